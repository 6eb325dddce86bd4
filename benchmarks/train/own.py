"""Read our own requests in `own/`: catalogues like those of MCP servers, each with people's requests.

Catalogues in `own/held_out/` serve model choice and calibration, never training.

A file has {about, tools: [{name, about, parameters}], requests: [[words, tool or "", arguments]]}; "" if no tool fits.
`"tools": "builtin"` means the built-in tools. A parameter is `TYPE! description`; `!` means required. TYPE is a type of
JSON Schema, `array of TYPE`, or choices as `a|b|c`. A nested object is an object in the file, and `_` is its
description.
"""

import asyncio
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from benchmarks.ranking.data import tool_spec
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.toolsets.servers.opening import builtin_servers

FOLDER = Path(__file__).with_name("own")
ABSENT = 7
"""One in this many requests names a missing file."""
_NEW = frozenset(["ai.write", "ai.make_folder"])
"""Built-in tools whose path need not exist."""
_OF_FOLDERS = frozenset(["ai.list", "ai.find"])
_OF_EITHER = frozenset(["ai.search", "ai.count", "ai.move", "ai.copy", "ai.delete"])
_FOLDERS: list[TemporaryDirectory[str]] = []
"""Temporary folders with the files that requests name, kept until the process exits."""


class Request(NamedTuple):
    """A user's request, the tool that fits, and its arguments."""

    text: str
    tool: str
    """Empty if no tool fits."""
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Own:
    """One catalogue with its requests."""

    name: str
    tools: Mapping[str, ToolSpec]
    requests: tuple[Request, ...]


def catalogues(*, held_out: bool = False) -> Iterator[Own]:
    """Yield the catalogues for training, or the held-out catalogues for model choice and calibration."""
    folder = FOLDER / "held_out" if held_out else FOLDER
    for path in sorted(folder.glob("*.json")):
        held = json.loads(path.read_text(encoding="utf-8"))
        requests = tuple(Request(*one) for one in held["requests"])
        tools = (
            _builtin(requests)
            if held["tools"] == "builtin"
            else {one["name"]: _spec(one, held["about"]) for one in held["tools"]}
        )
        yield Own(path.stem, tools, requests)


def _builtin(requests: Sequence[Request]) -> dict[str, ToolSpec]:
    """Return the built-in tools for a folder with most of the files that the requests name."""
    kept = TemporaryDirectory()
    folder = Path(kept.name)
    for number, request in enumerate(requests):
        if request.tool not in _NEW and number % ABSENT:
            _put_there(folder, request)
    servers = builtin_servers(folder, None, None, None, ())
    for server in servers.values():
        asyncio.run(server.connect(0))
    _FOLDERS.append(kept)
    return {spec.name: replace(spec, resolve_arguments=None) for server in servers.values() for spec in server.specs}


def _put_there(folder: Path, request: Request) -> None:
    """Create the file or folder that a request's path names, if it looks like a path."""
    path = request.arguments.get("path")
    if not isinstance(path, str) or not re.fullmatch(r"[\w.][\w./-]*", path) or ".." in path:
        return
    place = folder / path
    is_folder = request.tool in _OF_FOLDERS or (not place.suffix and request.tool in _OF_EITHER)
    try:
        (place if is_folder else place.parent).mkdir(parents=True, exist_ok=True)
        if not is_folder and not place.exists():
            place.touch()
    except (FileExistsError, NotADirectoryError):
        return  # another request has a file where this request has a folder


def _spec(tool: Mapping[str, Any], about: str) -> ToolSpec:
    schema = _schema(tool.get("parameters") or {})[0]
    return tool_spec(tool["name"], tool.get("about") or "", schema, server_description=about, rated=True)


def _schema(said: str | Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """Return (JSON Schema, whether it is required) of a parameter, or of all parameters of a tool."""
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
