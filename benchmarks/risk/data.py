"""Read labelled tools: those of public servers, and those that we wrote."""

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from mcp_types import ToolAnnotations

from packetgate.tools.risk.parameter_kinds import Definition

_HERE = Path(__file__).parent


class Example(NamedTuple):
    """A tool with its label."""

    tool: Definition
    label: str
    server: str
    hints: ToolAnnotations | None = None
    doubted: bool = False

    @property
    def does_more(self) -> bool:
        """Whether the tool does more than read."""
        return self.label != "read"


def data_folder(arguments: list[str]) -> Path:
    """Return the folder of the data sets: the first argument, or `PACKETGATE_DATA`."""
    given = arguments[0] if arguments else os.environ.get("PACKETGATE_DATA", "")
    folder = Path(given)
    if not given or not (folder / "tool_risk" / "tools.jsonl").is_file():
        sys.exit("give the folder of the data sets, which has `tool_risk/tools.jsonl`, or set PACKETGATE_DATA")
    return folder


def labelled(folder: Path) -> list[Example]:
    """Return the tools that their authors labelled."""
    return [_labelled(row) for row in rows(folder / "tool_risk" / "tools.jsonl")]


def catalogue(folder: Path) -> list[Example]:
    """Return the tools of the public catalogue with our labels; empty without the catalogue."""
    path = folder / "routing" / "toucan_mcp_catalog" / "tools.jsonl"
    labels = {name: label for label, name in (line.split("\t") for line in _lines(_HERE / "catalogue.tsv"))}
    known = rows(path) if path.is_file() else ()
    return [
        Example(_definition(row), labels[row["id"]], row["id"].rpartition("/")[0])
        for row in known
        if row["id"] in labels
    ]


def own(name: str = "examples") -> list[Example]:
    """Return the tools that we wrote: `examples`, or `left_out` for tools of other kinds."""
    found, family = [], ""
    for line in _lines(_HERE / f"{name}.tsv"):
        if line.startswith("["):
            family = line.strip("[]")
            continue
        label, tool, description, parameters = (*line.split("\t"), "")[:4]
        found.append(Example(Definition(tool, description, _schema(parameters)), label, family))
    return found


def _labelled(row: dict[str, Any]) -> Example:
    stated = row.get("annotations")
    hints = None
    if stated:
        hints = ToolAnnotations.model_validate(stated)
    doubted = "doubt" in row or "variant" in row
    return Example(_definition(row), row["label"], row["server"], hints, doubted)


def _definition(row: dict[str, Any]) -> Definition:
    return Definition(row["name"], row.get("description") or "", row.get("input_schema") or {})


def _schema(written: str) -> dict[str, Any]:
    """Return the schema of parameters in the examples' notation: `path limit# deep? rows[] options{} mode=a,b`."""
    ends: dict[str, dict[str, Any]] = {"#": {"type": "number"}, "?": {"type": "boolean"}, "{}": {"type": "object"}}
    ends["[]"] = {"type": "array", "items": {"type": "object"}}
    properties: dict[str, Any] = {}
    for one in written.split():
        name, _, choices = one.partition("=")
        end = next((end for end in ends if name.endswith(end)), "")
        kind = {"type": "string", "enum": choices.split(",")} if choices else ends.get(end, {"type": "string"})
        properties[name.removesuffix(end)] = kind
    return {"type": "object", "properties": properties, "required": [*properties][:1]}


def rows(path: Path) -> Iterable[dict[str, Any]]:
    """Return the JSON objects in a file's lines."""
    return (json.loads(line) for line in path.read_text("utf-8").splitlines())


def _lines(path: Path) -> list[str]:
    return [line for line in path.read_text("utf-8").splitlines() if line and not line.startswith("#")]
