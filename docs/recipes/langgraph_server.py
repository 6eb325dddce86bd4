"""The graph of a router for a LangGraph server, such as `langgraph dev`."""

from packetgate.router import create_router


def cancel_order(order: str) -> str:
    """Cancel an order."""
    return f"cancelled {order}"


tools = [cancel_order, "mcp.json"]
graph = create_router(tools=tools, settings={"allow_write_tools": True}, journal="journal.db").graph
