"""Run a measured process: a server with a catalogue, or a front of FastMCP.

`python -m benchmarks.proxy.fronts catalogue FILE COUNT` serves COUNT tools of a file on standard input and output.
`proxy` and `search` serve the servers of `mcp.json` over HTTP with FastMCP's proxy; `search` adds its search transform.
"""

import asyncio
import json
import re
import sys
from pathlib import Path
from typing import Any

from fastmcp import FastMCP
from fastmcp.server import create_proxy
from fastmcp.server.transforms.search import BM25SearchTransform
from fastmcp.tools.base import Tool, ToolResult

PAGE = 100
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")


class Echo(Tool):
    """A tool that returns its own name."""

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        """Answer."""
        return ToolResult(content=self.name)


def catalogue(file: Path, count: int) -> FastMCP[Any]:
    """Return a server with the first tools of a file, and with `read_echo`."""
    server: FastMCP[Any] = FastMCP("catalogue", dereference_schemas=False)
    tools: dict[str, Echo] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        name = _NOT_IN_NAMES.sub("_", f"{row['server']}-{row['name']}")[:100]
        if len(tools) < count - 1 and name not in tools:
            tools[name] = Echo(name=name, description=row["description"], parameters=row["input_schema"])
    tools["read_echo"] = Echo(name="read_echo", description="Read an echo.", parameters={"type": "object"})
    for tool in tools.values():
        server.add_tool(tool)
    return server


async def main(what: str, *rest: str) -> None:
    """Serve."""
    if what == "catalogue":
        await catalogue(Path(rest[0]), int(rest[1])).run_stdio_async(show_banner=False, log_level="ERROR")
        return
    await _front(what, Path(rest[0])).run_http_async(
        port=int(rest[1]), path="/mcp", show_banner=False, log_level="ERROR"
    )


def _front(what: str, config: Path) -> FastMCP[Any]:
    """Return FastMCP's proxy. It splits its list into pages, because the list is too long for one message."""
    front = create_proxy(json.loads(config.read_text(encoding="utf-8")), list_page_size=PAGE)
    if what == "search":
        front.add_transform(BM25SearchTransform())
    return front


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
