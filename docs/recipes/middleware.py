"""`PacketgateMiddleware` in a LangChain agent."""

from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from packetgate.middleware import PacketgateMiddleware
from packetgate.toolsets.servers.functions import reads


@reads
def late_orders() -> list[str]:
    """List the orders that are late."""
    return ["A-17", "B-4"]


def cancel_order(order: str) -> str:
    """Cancel an order."""
    return f"cancelled {order}"


gate = PacketgateMiddleware([late_orders, cancel_order])
agent = create_agent("openai:gpt-5-mini", middleware=[gate], checkpointer=InMemorySaver())
thread = {"configurable": {"thread_id": "ada"}}
state = agent.invoke({"messages": [("user", "Which orders are late? Cancel the oldest.")]}, thread)
while questions := state.get("__interrupt__"):
    for request in questions[0].value["action_requests"]:
        print(request["description"])
    state = agent.invoke(Command(resume="approve"), thread)
print(state["messages"][-1].text)
