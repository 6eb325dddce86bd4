"""`langgraph dev` as a real process, cut off from every network but loopback."""

import asyncio
import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import httpx
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from support.mcp_servers import alive
from support.programs import descendants

T = TypeVar("T")

REPOSITORY = Path(__file__).parents[2]
START_TIMEOUT_S = 120
STOP_TIMEOUT_S = 30
CLONE_NEWNET = 0x40000000

CHILD_SERVER = """
import os
from fastmcp import FastMCP
server = FastMCP("clock")
@server.tool(annotations={"readOnlyHint": True})
def get_process_number() -> str:
    "Get the number of the clock's process."
    return f"process number {os.getpid()}"
server.run(show_banner=False)
"""
"""A configured server, so that the graph has a child process to leave behind."""


@dataclass(frozen=True)
class LangGraphServer:
    """A running server and where it works."""

    url: str
    root: Path
    log_file: Path
    pid: int
    isolated: bool
    """Whether it runs in a network namespace with loopback alone; otherwise its proxies lead nowhere."""

    def talk(self, conversation: Callable[[LangGraphClient], Awaitable[T]]) -> T:
        """Run a conversation over HTTP, from within the server's network."""
        return self.within(lambda: asyncio.run(_with_client(self.url, conversation)))

    def within(self, what: Callable[[], T]) -> T:
        """Do something within the server's network: a namespace belongs to a thread."""

        def run() -> T:
            if self.isolated:
                _enter_network_of(self.pid)
            return what()

        with ThreadPoolExecutor(1) as thread:
            return thread.submit(run).result()

    def log(self) -> str:
        return self.log_file.read_text(errors="replace")


@contextmanager
def serve_langgraph(folder: Path) -> Iterator[LangGraphServer]:
    """Start `langgraph dev` with all it keeps below `folder`; on leaving, the server and its children are gone."""
    root = folder / "root"
    root.mkdir()
    isolated = _can_isolate()
    log_file = folder / "server.log"
    port = 8123 if isolated else _free_port()
    command = [sys.executable, "-m", "langgraph_cli", "dev", "--no-browser", "--no-reload", "--host", "127.0.0.1"]
    command += ["--port", str(port), "--config", str(REPOSITORY / "langgraph.json")]
    if isolated:
        command = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", *command]
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=_environment(folder, root), stdout=log, stderr=log, start_new_session=True
        )
    server = LangGraphServer(f"http://127.0.0.1:{port}", root, log_file, process.pid, isolated)
    try:
        _wait_until_it_answers(server, process)
        yield server
    finally:
        _stop(process)


async def _with_client(url: str, conversation: Callable[[LangGraphClient], Awaitable[T]]) -> T:
    async with get_client(url=url, api_key=None) as client:
        return await conversation(client)


def _environment(folder: Path, root: Path) -> dict[str, str]:
    config = folder / "mcp.json"
    child = {"command": sys.executable, "args": ["-c", CHILD_SERVER], "trusted": True}
    config.write_text(json.dumps({"mcpServers": {"clock": child}, "builtin": True}))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LANGSMITH_", "PACKETGATE_"))}
    nowhere = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), "http://127.0.0.1:9")
    return {
        **kept,
        **nowhere,
        "NO_PROXY": "127.0.0.1",
        "LANGSMITH_TRACING": "false",
        "LANGGRAPH_CLI_NO_ANALYTICS": "1",
        "NO_COLOR": "1",
        "PACKETGATE_HOME": str(folder / "home"),
        "PACKETGATE_ROOT": str(root),
        "PACKETGATE_MCP_CONFIG": str(config),
    }


def _can_isolate() -> bool:
    if not shutil.which("unshare") or not shutil.which("ip"):
        return False
    tried = subprocess.run(["unshare", "--net", "ip", "link", "set", "lo", "up"], check=False, capture_output=True)
    return tried.returncode == 0


def _enter_network_of(pid: int) -> None:
    with Path(f"/proc/{pid}/ns/net").open() as namespace:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(namespace.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"cannot enter the network of process {pid}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_it_answers(server: LangGraphServer, process: "subprocess.Popen[bytes]") -> None:
    async def ping(client: LangGraphClient) -> None:
        await client.http.get("/ok")

    deadline = time.monotonic() + START_TIMEOUT_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            return server.talk(ping)
        except httpx.TransportError:
            time.sleep(0.2)
    raise AssertionError(f"langgraph dev does not answer, exit status {process.poll()}:\n{server.log()}")


def _stop(process: "subprocess.Popen[bytes]") -> None:
    """End the server as Ctrl-C does; what it does not end itself is killed, and counts as a failure."""
    family = [process.pid, *descendants(process.pid)]
    process.send_signal(signal.SIGINT)
    with suppress(subprocess.TimeoutExpired):
        process.wait(STOP_TIMEOUT_S)
    left = [pid for pid in family if alive(pid)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    process.wait()
    assert not left, f"still running after the server was stopped: {left}"
