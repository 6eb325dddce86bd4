"""The texts of a tool that a request is held against, and what each counts."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from tools.spec.schemas import parts_of
from tools.spec.tool_spec import ToolSpec


class Field(NamedTuple):
    """What a field counts, and how many words it usually holds."""

    weight: float
    usual_length: int


FIELDS = {
    "name": Field(3.0, 3),
    "server": Field(1.0, 2),
    "brief": Field(1.0, 15),
    "full": Field(1.0, 25),
    "parameters": Field(0.5, 30),
    "examples": Field(1.0, 15),
}
"""The brief description is the first part of the full one: its words count twice."""


def texts_of(spec: ToolSpec) -> dict[str, str]:
    """Return the text of each of `FIELDS`."""
    return {
        "name": spec.upstream_name,
        "server": spec.server,
        "brief": spec.brief,
        "full": spec.full,
        "parameters": " ".join(_said_by({"properties": spec.parameters, "$defs": spec.input_schema.get("$defs")})),
        "examples": " ".join(spec.examples),
    }


def _said_by(schema: dict[str, Any]) -> Iterator[str]:
    """Yield a schema's names, descriptions and allowed words, with those of its parts."""
    for name, part in parts_of(schema):
        description, allowed = part.get("description"), part.get("enum")
        yield name
        if isinstance(description, str):
            yield description
        if isinstance(allowed, list):
            yield from (value for value in allowed if isinstance(value, str))
