"""Requests of our own: catalogues in the manner of MCP servers, each with what people ask of it, in `own/`.

A file holds {about, tools: [{name, about, parameters}], requests: [[words, tool or "", arguments]]}; "" where none of
its tools serves. A parameter is `TYPE! what it is`; `!`: required. TYPE is a type of JSON Schema, `array of TYPE`, or
choices as `a|b|c`; an object within an object is nested, and `_` says what it is.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from state.routing import Risk
from tools.spec.descriptions import brief_of
from tools.spec.tool_spec import ToolSpec

FOLDER = Path(__file__).with_name("own")
HELD_OUT_PERCENT = 20
"""Of the catalogues, by name, kept from training: to choose and to calibrate on."""


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

    @property
    def held_out(self) -> bool:
        """Whether it is kept from training."""
        digest = hashlib.sha1(self.name.encode(), usedforsecurity=False).hexdigest()
        return int(digest, 16) % 100 < HELD_OUT_PERCENT


def catalogues(folder: Path = FOLDER) -> Iterator[Own]:
    """Yield every catalogue, by the name of its file."""
    for path in sorted(folder.glob("*.json")):
        held = json.loads(path.read_text(encoding="utf-8"))
        tools = {one["name"]: _spec(one, held["about"]) for one in held["tools"]}
        yield Own(path.stem, tools, tuple(Request(*one) for one in held["requests"]))


def _spec(tool: Mapping[str, Any], about: str) -> ToolSpec:
    full = tool.get("about") or tool["name"]
    return ToolSpec(
        name=tool["name"],
        server="",
        upstream_name=tool["name"],
        full=full,
        brief=brief_of(full),
        input_schema=_schema(tool.get("parameters") or {})[0],
        risk=Risk.READ,
        server_about=about,
    )


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
