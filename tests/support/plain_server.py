"""MCP servers as processes, on standard input and output, without FastMCP, whose import takes seconds."""

import asyncio
import inspect
import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

ToolFunction = Callable[..., Awaitable[Any]]
PRELUDE = f"""
import asyncio, json, os, sys
sys.path[0] = {str(Path(__file__).parent)!r}
from plain_server import Folder, PlainServer
folder = Folder(sys.argv[1]) if sys.argv[1:] else None
server = PlainServer("plain")
"""
"""The first lines of a server's code."""


def entry(server: str | Path, *args: str | Path, **more: Any) -> dict[str, Any]:
    """Return the entry of `mcp.json` that starts a script, or code that offers tools of a `server`.

    The first argument becomes the variable `folder` of the code.
    """
    start = [str(server)] if isinstance(server, Path) else ["-c", f"{PRELUDE}{server}\nserver.run()\n"]
    return {"command": sys.executable, "sandbox": "off", "args": [*start, *map(str, args)], "trusted": True, **more}


def configure(file: Path, *, builtin: bool = False, **entries: dict[str, Any]) -> Path:
    """Write an `mcp.json` with these servers, and return its path."""
    file.write_text(json.dumps({"mcpServers": entries, **({"builtin": True} if builtin else {})}))
    return file


class Folder:
    """A folder of files through which a test and a server process communicate."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    def note(self, name: str, line: object) -> None:
        """Append a line to a file."""
        with (self / name).open("a") as file:
            file.write(f"{line}\n")

    def lines(self, name: str) -> list[str]:
        """Return the lines of a file; none if the file is missing."""
        file = self / name
        return file.read_text().splitlines() if file.exists() else []

    async def until(self, name: str) -> None:
        """Wait until a file exists."""
        while not (self / name).exists():  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(0.01)


class PlainServer:
    """Offers coroutine functions as tools. The functions take strings, and return text or the parts of an answer. An
    `OSError` becomes the tool's error, and a cancelled call cancels its function.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._tools: dict[str, tuple[ToolFunction, dict[str, Any]]] = {}
        self._calls: dict[Any, asyncio.Task[None]] = {}

    def tool(self, function: ToolFunction, **annotations: bool) -> ToolFunction:
        """Offer a function as a tool."""
        parameters = list(inspect.signature(function).parameters)
        schema = {"type": "object", "properties": {one: {"type": "string"} for one in parameters}}
        listed = {
            "name": function.__name__,
            "description": inspect.getdoc(function),
            "inputSchema": schema | {"required": parameters},
            "annotations": annotations,
        }
        self._tools[function.__name__] = (function, listed)
        return function

    def reading(self, function: ToolFunction) -> ToolFunction:
        """Offer a function as a tool that is annotated as read-only."""
        return self.tool(function, readOnlyHint=True)

    def run(self) -> None:
        """Serve until standard input ends, then abort running calls."""
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        lines = asyncio.StreamReader(limit=2**24)
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
        async for line in lines:
            self._take(json.loads(line))
        os._exit(0)

    def _take(self, message: dict[str, Any]) -> None:
        params = message.get("params") or {}
        match message.get("method"):
            case "initialize":
                version = {"protocolVersion": params["protocolVersion"]}
                info = {"capabilities": {"tools": {}}, "serverInfo": {"name": self._name, "version": "1"}}
                self._say(message["id"], result=version | info)
            case "ping":
                self._say(message["id"], result={})
            case "tools/list":
                self._say(message["id"], result={"tools": [listed for _, listed in self._tools.values()]})
            case "tools/call":
                self._calls[message["id"]] = asyncio.create_task(self._call(message["id"], **params))
            case "notifications/cancelled":
                if call := self._calls.get(params["requestId"]):
                    call.cancel()
            case str() as method if "id" in message:
                self._say(message["id"], error={"code": -32601, "message": f"no method {method}"})

    async def _call(self, request: Any, name: str, arguments: dict[str, str] | None = None, **_: Any) -> None:
        function, _ = self._tools[name]
        failed = False
        try:
            output = await function(**(arguments or {}))
        except OSError as error:
            output, failed = str(error), True
        content = [{"type": "text", "text": output}] if isinstance(output, str) else output
        self._say(request, result={"content": content, "isError": failed})

    def _say(self, request: Any, **fields: Any) -> None:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request, **fields}) + "\n")
        sys.stdout.flush()
