"""`packetgate studio` and `langgraph dev` as processes without access to other machines."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from support.clock_server import Clock
from support.command_line import COMMAND
from support.mcp_servers import alive
from support.pages import ROOT
from support.programs import descendants, missing, require
from support.scripted_openai import free_port

T = TypeVar("T")

GRAPH = "packetgate"
START_TIMEOUT_S = 120
STOP_TIMEOUT_S = 30
ALARMS = ("BlockingError", "Blocking call", "unregistered type", "Blocked deserialization")


@dataclass(frozen=True)
class LangGraphServer:
    """A running server and its folders."""

    url: str
    root: Path
    log_file: Path
    pid: int

    @property
    def clock(self) -> Clock:
        """The MCP server behind it, whose process must exit with the server."""
        return Clock(self.log_file.parent)

    def talk(self, conversation: Callable[[LangGraphClient], Awaitable[T]]) -> T:
        """Run a conversation over HTTP, in a thread with its own event loop."""

        async def run() -> T:
            async with get_client(url=self.url, api_key=None) as client:
                return await conversation(client)

        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, run()).result()

    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    def alarms(self) -> list[str]:
        """Return the log lines that report errors or blocking calls."""
        return [line for line in self.log().splitlines() if any(alarm in line for alarm in ALARMS)]


@contextmanager
def serve_langgraph(folder: Path, **environment: str) -> Iterator[LangGraphServer]:
    """Run `packetgate studio` with its data below `folder` until the end of the block; its children must also exit."""
    (root := folder / "root").mkdir()
    with _serve([str(COMMAND), "studio"], folder, root, folder, **environment) as server:
        yield server


@contextmanager
def serve_own_app(folder: Path) -> Iterator[LangGraphServer]:
    """Start `langgraph dev` with the built wheel in `folder`, which has a `langgraph.json`.

    The parent folder stores the log and the installed wheel.
    """
    command = [str(COMMAND.with_name("langgraph")), "dev", "--no-browser", "--no-reload"]
    path = f"{COMMAND.parent}{os.pathsep}{os.environ['PATH']}"
    installed = str(_install_wheel(folder.parent))
    with _serve(command, folder.parent, folder, folder, PATH=path, PYTHONPATH=installed) as server:
        yield server


def _install_wheel(folder: Path) -> Path:
    """Build the wheel, and return a new folder with it; its dependencies are those of the tests."""
    installed = folder / "installed"
    build = ["build", "--wheel", "--out-dir", str(folder), str(ROOT)]
    install = ["pip", "install", "--no-deps", "--no-index", "--find-links", str(folder), "packetgate"]
    for command in (build, [*install, "--target", str(installed), "--python", sys.executable]):
        ended = subprocess.run([require("uv"), *command], capture_output=True, text=True, check=False)
        if ended.returncode:
            missing(f"the wheel cannot be made: {ended.stderr}")
    return installed


@contextmanager
def _serve(command: list[str], folder: Path, root: Path, cwd: Path, **environment: str) -> Iterator[LangGraphServer]:
    log_file, port = folder / "server.log", free_port()
    with log_file.open("wb") as log:
        variables = _environment(folder, root) | environment
        command = [*command, "--port", str(port)]
        process = subprocess.Popen(command, cwd=cwd, env=variables, stdout=log, stderr=log, start_new_session=True)
    server = LangGraphServer(f"http://127.0.0.1:{port}", root, log_file, process.pid)
    try:
        _wait_until_it_answers(server, process)
        yield server
    finally:
        _stop(process)


def turn_input(text: str) -> dict[str, Any]:
    """Return a turn's input in the form of chat front ends."""
    return {"messages": [{"role": "user", "content": text}]}


async def ask(client: LangGraphClient, text: str, assistant: str = GRAPH, **context: Any) -> tuple[str, Any]:
    """Return a new thread, and the state after its first turn."""
    thread = (await client.threads.create())["thread_id"]
    return thread, await client.runs.wait(thread, assistant, input=turn_input(text), context=context)


async def reply(client: LangGraphClient, thread: str, decision: Any, assistant: str = GRAPH, **context: Any) -> Any:
    """Return the state after a reply."""
    return await client.runs.wait(thread, assistant, command={"resume": decision}, context=context)


def _environment(folder: Path, root: Path) -> dict[str, str]:
    config = Clock(folder).configure(folder / "mcp.json")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LANGSMITH_", "PACKETGATE_"))}
    nowhere = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), "http://127.0.0.1:9")
    return {
        **kept,
        **nowhere,
        "NO_PROXY": "127.0.0.1",
        "LANGSMITH_TRACING": "false",
        "NO_COLOR": "1",
        "PACKETGATE_HOME": str(folder / "home"),
        "PACKETGATE_ROOT": str(root),
        "PACKETGATE_MCP_CONFIG": str(config),
    }


def _wait_until_it_answers(server: LangGraphServer, process: "subprocess.Popen[bytes]") -> None:
    async def ping(client: LangGraphClient) -> None:
        await client.http.get("/ok")

    deadline = time.monotonic() + START_TIMEOUT_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            return server.talk(ping)
        except httpx.TransportError:
            time.sleep(0.2)
    raise AssertionError(f"the server does not answer, exit status {process.poll()}:\n{server.log()}")


def _stop(process: "subprocess.Popen[bytes]") -> None:
    """Stop the server like Ctrl-C. Kill any child process that is still running, and fail the test."""
    family = [process.pid, *descendants(process.pid)]
    process.send_signal(signal.SIGINT)
    with suppress(subprocess.TimeoutExpired):
        process.wait(STOP_TIMEOUT_S)
    left = [pid for pid in family if alive(pid)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    process.wait()
    assert not left, f"still running after the server was stopped: {left}"
