"""A stateful MCP server on standard input and output: a counter in the memory of its process."""

import secrets

from fastmcp import FastMCP

server = FastMCP("counter")
process = secrets.token_hex(4)
"""Identifies this process. In the sandbox, every server has the same process id."""
state = {"value": 0, "additions": 0}


@server.tool(annotations={"readOnlyHint": True})
def show() -> str:
    """Show the value of the counter."""
    return f"value {state['value']} after {state['additions']} additions in process {process}"


@server.tool
def add(n: int) -> str:
    """Add a number to the counter."""
    state["value"] += n
    state["additions"] += 1
    return f"added {n} in process {process}"


if __name__ == "__main__":
    server.run(show_banner=False)
