"""Provide the catalogues and requests for which tokens are counted."""

import json
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mcp_types import Tool

from benchmarks.ranking.data import read_queries, read_tools
from packetgate.state.errors import InputError
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.toolsets.servers.config import load_config
from packetgate.toolsets.servers.opening import open_hub
from packetgate.toolsets.servers.specs import spec_of

PATIENCE_S = 120.0
FILESYSTEM = "@modelcontextprotocol/server-filesystem"
FILE_REQUESTS = (
    "What does notes.txt say?",
    "Show me everything in the reports folder",
    "Create a file todo.md with three empty check boxes",
    "Replace the word draft with final in plan.md",
    "Which folders may you look into?",
    "How large is backup.tar, and when was it last changed?",
    "Find every CSV file below data",
    "Move old.log into the archive folder",
    "Make a new folder called invoices",
    "Draw the folder tree of this project",
    "Read a.txt and b.txt and tell me how they differ",
    "List the files here, the largest first",
)


@dataclass(frozen=True)
class Measured:
    """Tools, and requests that need them."""

    name: str
    catalogue: Catalogue
    requests: Sequence[str]
    goal: float | None = None
    """Goal: the maximum share of Packetgate's tool part in the full catalogue, from 0 to 1."""
    left_out: int = 0
    """Number of tools omitted because an earlier tool has the same server and name."""


def from_files(name: str, tools: Sequence[Path], queries: Sequence[Path], goal: float | None = None) -> Measured:
    """Return the tools as their servers list them, and labelled requests.

    Raises:
        InputError: a file cannot be read, or has another format.
    """
    known = read_tools(tools)
    specs: dict[str, ToolSpec] = {}
    for row in known.values():
        listed = Tool(name=row.upstream_name, description=row.full, input_schema=row.input_schema)
        spec = spec_of(row.server or "tools", listed, trusted=False)
        specs.setdefault(spec.name, spec)
    requests = [query.text for query in read_queries(queries, known)]
    return Measured(name, Catalogue(specs.values()), requests, goal, left_out=len(known) - len(specs))


def livemcpbench(data: Path) -> Measured:
    """Return 527 tools of real servers, from a folder of data sets.

    Raises:
        InputError: the data set is missing.
    """
    folder = data / "livemcpbench"
    if not folder.is_dir():
        raise InputError(f"{folder} does not exist: give the folder of data sets, or set PACKETGATE_DATA")
    return from_files("livemcpbench", [folder / "tools.jsonl"], [folder / "queries.jsonl"], goal=0.05)


async def filesystem() -> Measured:
    """Return the tools that the npm filesystem server lists.

    Raises:
        InputError: `npx` is not installed, or the server does not start.
    """
    npx = shutil.which("npx")
    if npx is None:
        raise InputError(f"{FILESYSTEM} needs `npx`, which is not installed: install Node.js, or use --tools")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        servers = {"files": {"command": npx, "args": ["-y", FILESYSTEM, str(folder)]}}
        (folder / "mcp.json").write_text(json.dumps({"mcpServers": servers, "builtin": False}))
        config = load_config(folder / "mcp.json")
        async with await open_hub(config, folder, folder / "logs", None, patience_s=PATIENCE_S) as hub:
            catalogue = await hub.catalogue()
            problems = "; ".join(one.problem for one in hub.health() if one.problem)
    if not catalogue:
        raise InputError(f"{FILESYSTEM} gave no tools: {problems or 'it did not start in time'}")
    return Measured("filesystem", catalogue, FILE_REQUESTS, goal=1.0)
