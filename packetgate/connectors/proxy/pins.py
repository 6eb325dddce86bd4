"""`packetgate proxy --check` and `--pin`: every server, tool and definition, compared with those that were pinned."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import typer

from packetgate.graph.composition import open_tools
from packetgate.graph.settings import Settings
from packetgate.state.errors import ConfigError
from packetgate.state.sections import ServerHealth
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.preferences import read_file

PINS = "packetgate.pins.json"
VERSION = 1


async def preflight(settings: Settings, pins: Path | None, *, pin: bool, as_json: bool) -> int:
    """Print how servers and tools compare with the pins, or pin them; the exit status is 1 if a check is bad."""
    file = pins or Path(PINS)
    pinned = None if pin else _read_pins(file, must=pins is not None)
    async with open_tools(settings) as hub:
        tools, servers = await hub.catalogue(), hub.health()
    found = [*_checks(servers, tools, pinned)]
    if pin:
        _write_pins(file, tools)
        typer.echo(f"{file}: {len(tools)} tools are pinned")
    elif as_json:
        typer.echo(json.dumps([asdict(one) for one in found], indent=2, ensure_ascii=False))
    else:
        typer.echo("\n".join(f"{one.verdict:4} {one.name}: {one.detail}" for one in found))
    return int(any(one.verdict == "bad" for one in found))


@dataclass(frozen=True)
class _Check:
    verdict: Literal["ok", "bad"]
    name: str
    reason: Literal["ready", "server_failed", "same", "not_pinned", "definition_changed", "gone", "left_out"]
    detail: str


def _checks(servers: tuple[ServerHealth, ...], tools: Catalogue, pinned: Mapping[str, str] | None) -> Iterator[_Check]:
    for server in servers:
        if server.state != "ready":
            yield _Check("bad", server.name, "server_failed", server.problem or "it gave no answer in time")
        elif server.problem and server.tools:
            yield _Check("bad", server.name, "left_out", server.problem)
        else:
            yield _Check("ok", server.name, "ready", f"{server.tools} tools")
    if pinned is None:
        return
    down = {server.name for server in servers if server.state != "ready"}
    for name, spec in tools.items():
        if name not in pinned:
            yield _Check("bad", name, "not_pinned", f"it is not pinned: look at it, then pin it; it may {spec.risk}")
        elif pinned[name] != spec.digest:
            yield _Check("bad", name, "definition_changed", "its definition or its server has changed since")
        else:
            yield _Check("ok", name, "same", f"as pinned; it may {spec.risk}")
    for name in pinned:
        if name not in tools and name.partition(".")[0] not in down:
            yield _Check("bad", name, "gone", "it was pinned, and is not there any more")


def _read_pins(path: Path, *, must: bool) -> dict[str, str] | None:
    if not must and not path.exists():
        return None
    kept = read_file(path, "JSON", "--pins, or pin what there is with --pin")
    tools = kept.get("tools") if isinstance(kept, dict) and kept.get("version") == VERSION else None
    if not isinstance(tools, dict) or not all(isinstance(one, str) for one in tools.values()):
        raise ConfigError(f"{path}: not a file of pins of version {VERSION}: make one with --pin")
    return tools


def _write_pins(path: Path, tools: Catalogue) -> None:
    kept = {"version": VERSION, "tools": {name: spec.digest for name, spec in tools.items()}}
    try:
        path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}: choose another file with --pins") from error
