"""Clean the tool definitions that a server lists, and leave out unusable tools."""

import json
import re
from collections.abc import Callable
from typing import Any

from packetgate.tools.checks.dialects import normalize_schema
from packetgate.tools.checks.validation import schema_error

MAX_TOOLS = 5_000
MAX_DESCRIPTION = 20_000
"""Longest description, in characters; the rest is cut."""
MAX_DEFINITION = 100_000
"""Largest definition of a tool without its description, in characters of JSON."""

_NAME = re.compile(r"[\w./: -]{1,128}")
_BLANK_LETTERS = "\u115f\u1160\u3164\uffa0"
"""Letters that are displayed as blanks."""
_DEFINITION = "name title description inputSchema outputSchema annotations execution icons _meta".split()
_PROSE = frozenset({"description", "title", "$comment"})

_Tool = dict[str, Any]


class _UnusableError(ValueError):
    pass


def usable_tools(
    tools: list[Any], known_names: set[str], check: Callable[[_Tool], None]
) -> tuple[list[_Tool], list[_Tool], list[str], list[str]]:
    """Return the usable tools, each also as the server defines it, and a phrase for each unusable and changed tool.

    Args:
        known_names: the names of the tools on earlier pages of the list. This function adds the names of this page.
        check: raises ValueError for a tool that violates the protocol.
    """
    usable: list[_Tool] = []
    definitions: list[_Tool] = []
    left_out: list[str] = []
    changed: list[str] = []
    for number, raw in enumerate(tools[:MAX_TOOLS], 1):
        name = raw.get("name") if isinstance(raw, dict) else None
        label = ascii(name[:60]) if isinstance(name, str) else f"number {number}"
        try:
            tool, changes = _cleaned(raw)
            if tool["name"] in known_names:
                raise _UnusableError("another tool has the same name")
            check(tool)
        except ValueError as error:
            left_out.append(f"{label}: {str(error).splitlines()[0]}")
        else:
            known_names.add(tool["name"])
            usable.append(tool)
            definitions.append(_definition(raw, tool))
            changed += [f"{label}: {'; '.join(changes)}"] if changes else []
    if len(tools) > MAX_TOOLS:
        left_out.append(f"{len(tools) - MAX_TOOLS:,} tools: the server lists more than {MAX_TOOLS:,}")
    return usable, definitions, left_out, changed


def _definition(raw: _Tool, tool: _Tool) -> _Tool:
    """Return a usable tool as the server defines it, without invisible characters and an unusable output schema."""
    fields = {key: raw[key] for key in _DEFINITION if key in raw and (key != "outputSchema" or key in tool)}
    definition: _Tool = without_invisible_chars(fields)
    return definition if len(json.dumps(definition)) <= 2 * MAX_DEFINITION + MAX_DESCRIPTION else tool


def _cleaned(raw: Any) -> tuple[_Tool, list[str]]:
    if not isinstance(raw, dict) or not isinstance(raw.get("name"), str):
        raise _UnusableError("the tool has no name")
    name = raw["name"]
    if not _NAME.fullmatch(name) or not name.strip() or any(letter in name for letter in _BLANK_LETTERS):
        raise _UnusableError("a name may have at most 128 characters: letters, digits, spaces and _ - . / :")
    prose = {key: raw[key][:MAX_DESCRIPTION] for key in ("title", "description") if isinstance(raw.get(key), str)}
    rest = {key: raw[key] for key in ("inputSchema", "annotations", "_meta") if raw.get(key) is not None}
    if len(json.dumps(rest)) > MAX_DEFINITION:
        raise _UnusableError(f"its definition is larger than {MAX_DEFINITION:,} characters")
    schema, changes = normalize_schema(without_invisible_chars(rest.pop("inputSchema", None), strict=True))
    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise _UnusableError("its schema accepts no object, but the arguments of a call are an object")
    if flaw := schema_error(schema):
        raise _UnusableError(f"its schema is broken: {flaw}")
    output = raw.get("outputSchema")
    if (
        isinstance(output, dict)
        and output.get("type") == "object"
        and len(json.dumps(output)) <= MAX_DEFINITION
        and not schema_error(output)
        and without_invisible_chars(output) == output
    ):
        rest["outputSchema"] = output
    return {"name": name, "inputSchema": schema, **without_invisible_chars({**prose, **rest})}, changes


def without_invisible_chars(value: Any, *, strict: bool = False) -> Any:
    """Return a value without invisible characters.

    Raises:
        _UnusableError: with `strict`, for invisible characters outside of prose.
    """
    match value:
        case str():
            visible = visible_text(value)
            if strict and visible != value:
                raise _UnusableError(f"its schema has invisible characters: {ascii(value)[:60]}")
            return visible
        case list():
            return [without_invisible_chars(inner, strict=strict) for inner in value]
        case dict():
            if strict and not all(_is_visible(char) for key in value for char in key):
                raise _UnusableError(f"its schema has a name with invisible characters: {ascii([*value])[:60]}")
            prose = {key for key, inner in value.items() if key in _PROSE and isinstance(inner, str)}
            return {
                without_invisible_chars(key): without_invisible_chars(inner, strict=strict and key not in prose)
                for key, inner in value.items()
            }
    return value


def visible_text(text: str) -> str:
    """Return a text without invisible characters."""
    return "".join(char for char in text if char in "\n\t" or _is_visible(char))


def _is_visible(char: str) -> bool:
    return char.isprintable() and char not in _BLANK_LETTERS
