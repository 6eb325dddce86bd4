"""Serve a stateful MCP server on standard input and output: a counter in the memory of its process.

The server also appends a line to a file for each addition, so that the benchmark sees those of all processes.
"""

import secrets
from pathlib import Path

from fastmcp import FastMCP

ADDITIONS = "additions.txt"
"""Path of the file, relative to the task's folder."""

server = FastMCP("counter")
process = secrets.token_hex(4)
"""Identifies this process. In the sandbox, every server has the same process id."""
state = {"value": 0}


@server.tool(annotations={"readOnlyHint": True})
def show() -> str:
    """Show the value of the counter."""
    return f"value {state['value']} in process {process}"


@server.tool
def add(n: int) -> str:
    """Add a number to the counter."""
    state["value"] += n
    with Path(ADDITIONS).open("a") as file:
        file.write(f"{n} in process {process}\n")
    return f"added {n} in process {process}"


if __name__ == "__main__":
    server.run(show_banner=False)
