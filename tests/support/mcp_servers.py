"""Test MCP servers: in this process, and as processes that can be slow, silent or killed."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import uvicorn
from fastmcp import FastMCP
from fastmcp.client.transports import FastMCPTransport
from fastmcp.tools import Tool

from packetgate.toolsets.servers.config import ServerConfig
from packetgate.toolsets.servers.connection import Connection
from packetgate.toolsets.servers.opening import new_connection

SCRIPT = Path(__file__).with_name("stdio_server.py")


class RawTool(Tool):
    """A tool with exactly the schema given, however broken; it answers `ran`."""

    async def run(self, arguments: dict[str, Any]) -> Any:
        return self.convert_result("ran")


def echoing(name: str) -> FastMCP[None]:
    """Return a server with a tool `echo` that returns the server's name."""
    server: FastMCP[None] = FastMCP(name)

    @server.tool
    def echo(text: str) -> str:
        """Give the text back."""
        return f"{name} says {text}"

    return server


@asynccontextmanager
async def over_http(server: FastMCP[Any], transport: Literal["http", "sse"], path: str = "/mcp") -> AsyncIterator[str]:
    """Serve a server over HTTP, and yield its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    app = server.http_app(path=path, transport=transport)
    served = uvicorn.Server(uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1, ws="none"))
    served.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    running = asyncio.create_task(served._serve([listener]))
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}{path}"
    finally:
        served.should_exit = True
        await running


def in_process(
    server: FastMCP[Any], *, name: str | None = None, trusted: bool = False, timeout_s: float | None = None
) -> Connection:
    """Return a connection to a server object."""
    config = ServerConfig(name or server.name, {"trusted": trusted, "timeout": timeout_s and 1000 * timeout_s})
    return Connection(config, lambda: FastMCPTransport(server))


class StdioServer:
    """A real server process that runs `stdio_server.py`; what it does can be seen in its folder.

    It waits to answer anything at all until the file `may_start` exists, when `waits`.
    """

    def __init__(self, folder: Path, name: str, *, waits: bool = False, **entry: Any) -> None:
        self.folder = folder / name
        self.folder.mkdir()
        if not waits:
            self.let_start()
        started = {"command": sys.executable, "args": [str(SCRIPT), str(self.folder)]}
        self.config = ServerConfig(name, {**started, "trusted": True, **entry})
        self.connection = new_connection(self.config, folder / "logs")

    @property
    def pids(self) -> list[int]:
        """The process ids of every start, oldest first."""
        return [int(line) for line in self.lines("pids")]

    @property
    def written(self) -> list[str]:
        """The arguments of its `write_line` calls."""
        return self.lines("written")

    def let_start(self) -> None:
        """Let a waiting server answer."""
        (self.folder / "may_start").touch()

    async def kill(self) -> None:
        """Kill the running process and wait until it is gone."""
        pid = self.pids[-1]
        os.kill(pid, signal.SIGKILL)
        await until(lambda: not alive(pid))

    def lines(self, name: str) -> list[str]:
        """Return the lines of a trace; those of `read` name the reads that were started."""
        file = self.folder / name
        return file.read_text().splitlines() if file.exists() else []


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not count as long as its parent collects it."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def until(happened: Callable[[], bool], within_s: float = 60.0) -> None:
    """Wait for an event in another process."""
    async with asyncio.timeout(within_s):
        while not happened():  # noqa: ASYNC110 - nothing signals what another process does
            await asyncio.sleep(0.01)
