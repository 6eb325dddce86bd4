"""Requests of our own: catalogues in the manner of MCP servers, each with what people ask of it, in `own/`.

Those in `own/held_out/` are for choosing and calibrating, never trained on.

A file holds {about, tools: [{name, about, parameters}], requests: [[words, tool or "", arguments]]}; "" where none of
its tools serves; `"tools": "builtin"` are those that Packetgate brings along. A parameter is `TYPE! what it is`; `!`:
required. TYPE is a type of JSON Schema, `array of TYPE`, or choices as `a|b|c`; an object within an object is nested,
and `_` says what it is.
"""

import asyncio
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from benchmarks.ranking.data import tool_spec
from tools.servers.opening import builtin_servers
from tools.spec.tool_spec import ToolSpec

FOLDER = Path(__file__).with_name("own")


class Request(NamedTuple):
    """What somebody asks, the tool that serves it, and its arguments."""

    text: str
    tool: str
    """Empty: none serves."""
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Own:
    """One catalogue with its requests."""

    name: str
    tools: Mapping[str, ToolSpec]
    requests: tuple[Request, ...]


def catalogues(*, held_out: bool = False) -> Iterator[Own]:
    """Yield the catalogues to train on, or those kept from it: to choose and to calibrate on."""
    folder = FOLDER / "held_out" if held_out else FOLDER
    for path in sorted(folder.glob("*.json")):
        held = json.loads(path.read_text(encoding="utf-8"))
        tools = (
            _builtin()
            if held["tools"] == "builtin"
            else {one["name"]: _spec(one, held["about"]) for one in held["tools"]}
        )
        yield Own(path.stem, tools, tuple(Request(*one) for one in held["requests"]))


@cache
def _builtin() -> dict[str, ToolSpec]:
    """Return the tools that are built in, as a turn knows them."""
    with TemporaryDirectory() as folder:
        servers = builtin_servers(Path(folder), None, None, None, ())
        for server in servers.values():
            asyncio.run(server.connect(0))
        return {spec.name: replace(spec, meant=None) for server in servers.values() for spec in server.specs}


def _spec(tool: Mapping[str, Any], about: str) -> ToolSpec:
    schema = _schema(tool.get("parameters") or {})[0]
    return tool_spec(tool["name"], tool.get("about") or "", schema, server_about=about, rated=True)


def _schema(said: str | Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """Return (JSON Schema, whether it is required) of a parameter, or of all of a tool's."""
    if isinstance(said, str):
        outer, _, about = said.partition(" ")
        kind = outer
        if outer.rstrip("!") == "array":
            _, kind, about = (*about.split(" ", 2), "", "")[:3]
        plain = _plain(kind.rstrip("!"))
        schema = plain if kind is outer else {"type": "array", "items": plain}
        return {**schema, **({"description": about} if about else {})}, "!" in {outer[-1:], kind[-1:]}
    own: dict[str, Any] = {"type": "object"}
    needed = False
    if "_" in said:
        own, needed = _schema(said["_"])
    parts = {name: _schema(part) for name, part in said.items() if name != "_"}
    own["properties"] = {name: schema for name, (schema, _) in parts.items()}
    own["required"] = [name for name, (_, required) in parts.items() if required]
    return own, needed


def _plain(kind: str) -> dict[str, Any]:
    return {"type": "string", "enum": kind.split("|")} if "|" in kind else {"type": kind}
