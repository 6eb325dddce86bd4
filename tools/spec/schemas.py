"""The parts of a tool's schema, however a server nests them."""

from collections.abc import Iterator
from typing import Any

MAX_DEPTH = 8
"""How deep a schema is read; a server may nest it without end."""


def parts_of(schema: Any, name: str = "", depth: int = 0) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a schema and all within it, each with the name of the parameter or definition that it describes."""
    if depth > MAX_DEPTH or not isinstance(schema, dict):
        return
    yield name, schema
    for kind in ("properties", "$defs"):
        named = schema.get(kind)
        for inner, part in named.items() if isinstance(named, dict) else ():
            yield from parts_of(part if isinstance(part, dict) else {}, inner, depth + 1)
    for kind in ("items", "anyOf", "oneOf", "allOf"):
        parts = schema.get(kind)
        for part in parts if isinstance(parts, list) else [parts]:
            yield from parts_of(part, name, depth + 1)
