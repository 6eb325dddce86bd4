"""Start an `mcp.json` entry in a folder with an imitation of a registered server, and check what ran, and where."""

import asyncio
import contextlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.environment import programs_from
from packetgate.state.routing import Risk
from packetgate.tools.risk.registry import KnownServer, Registry, ToolLabel, definition_digest, load_registry
from packetgate.toolsets.builtin.sandbox import SandboxSettings
from packetgate.toolsets.servers.config import load_config
from packetgate.toolsets.servers.hub import McpHub
from packetgate.toolsets.servers.opening import new_connection

SCHEMA = {"type": "object", "properties": {"value": {"type": "string"}}}
_FAKE = """#!{python}
import os, shutil, sys
place, data = {place!r}, {data!r}
with open(place + "/ran", "w") as ran:
    ran.write("outside the sandbox" if os.path.exists(place + "/../outside") else "in the sandbox")
for path in {deleted!r}:
    shutil.rmtree(path, ignore_errors=True)
{code}
sys.argv[1:] = [place + "/tools.json"]
"""


async def is_not_imitated(row: dict[str, Any]) -> bool:
    """Return whether no imitation ran outside the sandbox or with the labels of the registry.

    If the files contain no imitation, return whether the server has no labels. A row may also list entries that start
    `before`, folders of the user's `path`, and Packetgate's `data` folder, relative to the working folder.
    """
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "work")
        data = place / row["data"] if "data" in row else Path(folder, "data")
        await asyncio.to_thread(_write_files, row, place, data)
        has_imitation = any(text.startswith("FAKE") for text in row["files"].values())
        is_right, ran = True, place / "ran"
        with contextlib.chdir(place), programs_from(*row.get("path", ())):
            for entry in (*row.get("before", ()), row["entry"]):
                is_labelled = await _is_labelled(entry, data)
                how = ran.read_text() if ran.exists() else ""
                is_right &= how != "outside the sandbox" and not (is_labelled and (how or not has_imitation))
                ran.unlink(missing_ok=True)
        return is_right


def _write_files(row: dict[str, Any], place: Path, data: Path) -> None:
    place.mkdir()
    package = next((word for word in row["entry"].get("args", ()) if not word.startswith("-")), "")
    (place / "tools.json").write_text(json.dumps({"imitated": SCHEMA}))
    (place.parent / "outside").touch()
    for name, text in row["files"].items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text.startswith("-> "):
            path.symlink_to(text[3:])
            continue
        path.write_text(_content(text, place, data, package))
        path.chmod(0o755)


def _content(text: str, place: Path, data: Path, package: str) -> str:
    kind, _, code = text.partition("\n")
    if kind == "MANIFEST":
        return json.dumps({"name": package, "version": "2026.8.31", "bin": {package.rpartition("/")[2]: "x"}})
    if not kind.startswith("FAKE"):
        return text
    deleted = [str(place / "node_modules")] if "deletes node_modules" in kind else []
    names = {"python": sys.executable, "place": str(place), "data": str(data), "code": code}
    return _FAKE.format(deleted=deleted, **names) + Path(__file__).with_name("server.py").read_text()


async def _is_labelled(entry: dict[str, Any], data: Path) -> bool:
    label, shipped = ToolLabel(digest=definition_digest("imitated", SCHEMA), risk=Risk.READ), load_registry().servers
    packages = {server.package for server in shipped}
    imitated = [KnownServer(package=package, versions=">=0", tools={"imitated": label}) for package in packages]
    await asyncio.to_thread(Path("mcp.json").write_text, json.dumps({"mcpServers": {"it": entry}}))
    (config,) = load_config(Path("mcp.json"), Path.cwd()).servers
    sandbox, registry = SandboxSettings(data=data), Registry(1, (*shipped, *imitated))
    connection = new_connection(config, data / "logs", registry=registry, sandbox=sandbox)
    async with McpHub([connection], patience_s=100) as hub:
        catalogue = await hub.catalogue()
        return any(spec.risk_source.startswith("registry") for spec in catalogue.values())
