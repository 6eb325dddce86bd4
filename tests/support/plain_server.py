"""An MCP server on standard input and output without FastMCP, whose import takes seconds."""

import asyncio
import inspect
import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

ToolFunction = Callable[..., Awaitable[Any]]


class PlainServer:
    """Tools are coroutine functions of strings that return text, or the parts of an answer; an `OSError` is the tool's
    error. A call that is cancelled is cancelled in them.
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
        """Offer a function as a tool that only reads, by its annotation."""
        return self.tool(function, readOnlyHint=True)

    def run(self) -> None:
        """Serve until standard input ends; what still runs is left off then."""
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
            said = await function(**(arguments or {}))
        except OSError as error:
            said, failed = str(error), True
        content = [{"type": "text", "text": said}] if isinstance(said, str) else said
        self._say(request, result={"content": content, "isError": failed})

    def _say(self, request: Any, **said: Any) -> None:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request, **said}) + "\n")
        sys.stdout.flush()
