"""MCP servers in this process, over HTTP, and as a process that tests can delay, silence or kill."""

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import uvicorn
from fastmcp import FastMCP
from fastmcp.client.transports import FastMCPTransport
from fastmcp.tools import Tool
from support.plain_server import Folder, entry

from packetgate.toolsets.builtin.sandbox import SandboxSettings
from packetgate.toolsets.servers.config import ServerConfig
from packetgate.toolsets.servers.connection import Connection
from packetgate.toolsets.servers.hub import McpHub
from packetgate.toolsets.servers.opening import new_connection

SCRIPT = Path(__file__).with_name("stdio_server.py")


class RawTool(Tool):
    """A tool with exactly this schema, even if it is invalid; it answers `ran`."""

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
async def serving(app: Any, grace_s: int = 1, listener: socket.socket | None = None) -> AsyncIterator[str]:
    """Serve an application on a free port of this machine or at a socket, and yield its address."""
    listener = listener or socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=grace_s, ws="none")
    server = uvicorn.Server(config)
    running = asyncio.create_task(server._serve([listener]))
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await running


def in_process(
    server: FastMCP[Any], *, name: str | None = None, trusted: bool = False, timeout_s: float | None = None
) -> Connection:
    """Return a connection to a server object."""
    config = ServerConfig(name or server.name, {"trusted": trusted, "timeout": timeout_s and 1000 * timeout_s})
    return Connection(config, lambda: FastMCPTransport(server))


@asynccontextmanager
async def sandboxed(
    data: Path, *command: str, name: str = "it", patience_s: float = 60.0, **more: Any
) -> AsyncIterator[McpHub]:
    """Open a hub to a server in the sandbox, with `data` as Packetgate's data folder."""
    config = ServerConfig(name, {"command": command[0], "args": list(command[1:]), **more})
    connection = new_connection(config, data / "logs", sandbox=SandboxSettings(data=data))
    async with McpHub([connection], patience_s=patience_s) as hub:
        await hub.catalogue(wait_for_all=True)
        yield hub


class StdioServer(Folder):
    """A process of `stdio_server.py`, observed through its folder. With `waits`, it answers after `let_start`."""

    def __init__(self, folder: Path, name: str, *, waits: bool = False, **more: Any) -> None:
        super().__init__(folder / name)
        (folder / name).mkdir()
        if not waits:
            self.let_start()
        self.config = ServerConfig(name, entry(SCRIPT, self.path, **more))
        self.connection = new_connection(self.config, folder / "logs")

    @property
    def pids(self) -> list[int]:
        """The process ids of all starts, oldest first."""
        return [int(line) for line in self.lines("pids")]

    @property
    def written(self) -> list[str]:
        """The arguments of its `write_line` calls."""
        return self.lines("written")

    def let_start(self) -> None:
        """Let a waiting server answer."""
        (self / "may_start").touch()

    async def kill(self) -> None:
        """Kill the running process and wait until it has exited."""
        pid = self.pids[-1]
        os.kill(pid, signal.SIGKILL)
        await until(lambda: not alive(pid))


def alive(pid: int) -> bool:
    """Return whether a process runs; a zombie does not count."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def until(happened: Callable[[], bool], within_s: float = 60.0) -> None:
    """Wait for an event in another process."""
    async with asyncio.timeout(within_s):
        while not happened():  # noqa: ASYNC110 - another process sends no event
            await asyncio.sleep(0.01)
