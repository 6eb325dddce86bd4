"""Preflight: every server, tool and definition, beside those that were pinned."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from packetgate.state.errors import ConfigError
from packetgate.state.sections import ServerHealth
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.preferences import read_file

PINS = "packetgate.pins.json"
VERSION = 1

Verdict = Literal["ok", "bad"]
Reason = Literal["ready", "server_failed", "same", "not_pinned", "definition_changed", "gone", "left_out"]


@dataclass(frozen=True)
class Check:
    """One server or tool, and how it stands."""

    verdict: Verdict
    name: str
    reason: Reason
    detail: str

    @property
    def line(self) -> str:
        """The check as a person reads it."""
        return f"{self.verdict:4} {self.name}: {self.detail}"


def checks(servers: tuple[ServerHealth, ...], tools: Catalogue, pinned: Mapping[str, str] | None) -> Iterator[Check]:
    """Yield how each server and each tool stands; without pins, only the servers."""
    for server in servers:
        yield _of_server(server)
    if pinned is None:
        return
    down = {server.name for server in servers if server.state != "ready"}
    for name, spec in tools.items():
        if name not in pinned:
            yield Check("bad", name, "not_pinned", f"it is not pinned: look at it, then pin it; it may {spec.risk}")
        elif pinned[name] != spec.digest:
            yield Check("bad", name, "definition_changed", "its definition or its server has changed since")
        else:
            yield Check("ok", name, "same", f"as pinned; it may {spec.risk}")
    for name in pinned:
        if name not in tools and name.partition(".")[0] not in down:
            yield Check("bad", name, "gone", "it was pinned, and is not there any more")


def report(found: list[Check], *, as_json: bool) -> str:
    """Return the checks as text, or as JSON for scripts."""
    if as_json:
        return json.dumps([asdict(one) for one in found], indent=2, ensure_ascii=False)
    return "\n".join(one.line for one in found)


def status_of(found: list[Check]) -> int:
    """Return the exit status: 0 if all is well, 1 if not."""
    return int(any(one.verdict == "bad" for one in found))


def read_pins(path: Path, *, must: bool) -> dict[str, str] | None:
    """Return the pinned digests by tool; None where there is no such file, unless it must be there.

    Raises:
        ConfigError: it cannot be read, or is no such file.
    """
    if not must and not path.exists():
        return None
    kept = read_file(path, "JSON", "--pins, or pin what there is with --pin")
    tools = kept.get("tools") if isinstance(kept, dict) else None
    if not isinstance(tools, dict) or kept.get("version") != VERSION or not all(map(_is_text, tools.values())):
        raise ConfigError(f"{path}: not a file of pins of version {VERSION}: make one with --pin")
    return tools


def write_pins(path: Path, tools: Catalogue) -> None:
    """Pin every tool as it is now. Raise ConfigError if the file cannot be written."""
    kept = {"version": VERSION, "tools": {name: spec.digest for name, spec in tools.items()}}
    try:
        path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}: choose another file with --pins") from error


def _of_server(server: ServerHealth) -> Check:
    if server.state != "ready":
        return Check("bad", server.name, "server_failed", server.problem or "it gave no answer in time")
    if server.problem and server.tools:
        return Check("bad", server.name, "left_out", server.problem)
    return Check("ok", server.name, "ready", f"{server.tools} tools")


def _is_text(value: Any) -> bool:
    return isinstance(value, str)
