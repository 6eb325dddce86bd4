"""What is measured, each as a process of its own: a server with a catalogue, and what stands in front of it.

`python -m benchmarks.proxy.fronts catalogue FILE COUNT` serves that many tools of a file on standard input and output;
`proxy` and `search` serve what `mcp.json` names over HTTP, by FastMCP's proxy, the latter with its search transform.
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
    """A tool that gives back its own name."""

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        """Answer."""
        return ToolResult(content=self.name)


def catalogue(file: Path, count: int) -> FastMCP[Any]:
    """Return a server of the first tools of a file; `read_echo` is one more."""
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
    """Return FastMCP's proxy; in pages, since its list is longer than a client takes at once."""
    front = create_proxy(json.loads(config.read_text(encoding="utf-8")), list_page_size=PAGE)
    if what == "search":
        front.add_transform(BM25SearchTransform())
    return front


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
