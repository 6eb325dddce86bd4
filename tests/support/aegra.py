"""Run Aegra, a LangGraph-API server on PostgreSQL and Redis, in a separate environment, as in docs/scaling.md."""

import asyncio
import json
import os
import re
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from support.mcp_servers import until
from support.programs import require

CHECKOUT = Path(__file__).parents[2]
WANTED = "aegra-api==0.11.*"
START_TIMEOUT_S = 300
SOON = {  # limits the wait for a dead server to seconds instead of a minute
    "LEASE_DURATION_SECONDS": "6",
    "HEARTBEAT_INTERVAL_SECONDS": "1",
    "REAPER_INTERVAL_SECONDS": "1",
    "WORKER_COUNT": "1",
    "N_JOBS_PER_WORKER": "5",
}


@cache
def python_for_aegra() -> str | None:
    """Return a Python version that Aegra supports, from the path or from pyenv."""
    versions = ("3.12", "3.13", "3.14")
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    named = [f"python{version}" for version in versions]
    found = [str(path) for version in versions for path in sorted(kept.glob(f"{version}*/bin/python{version}"))]
    return next(filter(_runs, [*named, *found]), None)


def _runs(python: str) -> bool:
    try:
        return subprocess.run([python, "-c", "import venv"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def install_aegra(folder: Path) -> Path:
    """Create an environment with Aegra and this checkout by `uv`; return its Python."""
    uv, python = require("uv"), folder / "venv/bin/python"
    pinned = ["--constraints", str(CHECKOUT / "constraints.txt"), "--python", str(python)]
    for command in (
        ["venv", "--python", str(python_for_aegra()), str(python.parents[1])],
        ["pip", "install", *pinned, WANTED, "greenlet", "--editable", f"{CHECKOUT}[postgres,reflex]"],
    ):
        subprocess.run([uv, "--quiet", *command], check=True)
    return python


@contextmanager
def serve_redis(folder: Path) -> Iterator[str]:
    """Start a Redis without persistence on a socket in the folder, and yield its URL."""
    socket = folder / "redis.sock"
    alone = ["--port", "0", "--unixsocket", str(socket), "--save", "", "--appendonly", "no"]
    with (folder / "redis.log").open("wb") as log:
        process = subprocess.Popen([require("redis-server"), *alone], cwd=folder, stdout=log, stderr=log)
    try:
        yield f"unix://{socket}"
    finally:
        process.terminate()
        process.wait()


@dataclass
class AegraServer:
    """A running server."""

    client: LangGraphClient
    process: asyncio.subprocess.Process


@dataclass(frozen=True)
class Aegra:
    """The environment and database of several servers."""

    python: Path
    redis_url: str
    database_url: str
    variables: dict[str, str] = field(default_factory=dict)

    @asynccontextmanager
    async def server(self, folder: Path, mcp_config: str) -> AsyncIterator[AegraServer]:
        """Start a server in a separate folder."""
        (folder / "served.py").write_text("from packetgate.graph.app import graph\n")
        graphs = {"dependencies": ["."], "graphs": {"packetgate": "./served.py:graph"}}
        (folder / "aegra.json").write_text(json.dumps(graphs))
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PACKETGATE_", "LANGSMITH_"))}
        where = {"PACKETGATE_HOME": str(folder / "home"), "PACKETGATE_MCP_CONFIG": mcp_config}
        shared = {"PACKETGATE_DATABASE_URL": self.database_url, "DATABASE_URL": self.database_url}
        broker = {"REDIS_BROKER_ENABLED": "true", "REDIS_URL": self.redis_url}
        log = folder / "log"
        with log.open("wb") as file:
            process = await asyncio.create_subprocess_exec(
                *(str(self.python), "-m", "uvicorn", "aegra_api.main:app", "--port", "0"),
                cwd=folder,
                env={**kept, **SOON, **where, **shared, **broker, **self.variables},
                stdout=file,
                stderr=file,
            )
        try:
            await until(lambda: process.returncode is not None or "running on" in log.read_text(), START_TIMEOUT_S)
            found = re.search(r"running on (http://\S+)", log.read_text())
            assert found, log.read_text()
            async with get_client(url=found[1], api_key=None) as client:
                yield AegraServer(client, process)
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()
