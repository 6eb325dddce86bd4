"""A server's list of tools as it came over the wire: what can be used of it, cleaned, and why the rest cannot."""

import json
import re
from collections.abc import Callable
from typing import Any

from tools.checks.validation import schema_flaw

MAX_TOOLS = 5_000
MAX_DESCRIPTION = 20_000
"""Longest description, in characters: what follows is left out."""
MAX_DEFINITION = 100_000
"""Largest tool, in characters of JSON, its description cut."""

_NAME = re.compile(r"[\w./: -]{1,128}")
_BLANK_LETTERS = "\u115f\u1160\u3164\uffa0"
"""Letters that are drawn as nothing."""
_PROSE = frozenset({"description", "title", "$comment"})

RawTool = dict[str, Any]


class _UnfitError(ValueError):
    pass


def usable(tools: list[Any], taken: set[str], check: Callable[[RawTool], None]) -> tuple[list[RawTool], list[str]]:
    """Return the tools that can be offered, and of each other one a phrase that names it and says why not.

    Of a tool only what is used here is kept; its name is added to those `taken`. `check` raises ValueError for one
    that is against the protocol. Blocking.
    """
    kept: list[RawTool] = []
    left_out: list[str] = []
    for place, raw in enumerate(tools[:MAX_TOOLS], 1):
        try:
            tool = _cleaned(raw)
            if tool["name"] in taken:
                raise _UnfitError("another tool has that name")
            check(tool)
        except ValueError as error:
            name = raw.get("name") if isinstance(raw, dict) else None
            called = ascii(name[:60]) if isinstance(name, str) else f"number {place}"
            left_out.append(f"{called}: {str(error).splitlines()[0]}")
        else:
            taken.add(tool["name"])
            kept.append(tool)
    if len(tools) > MAX_TOOLS:
        left_out.append(f"{len(tools) - MAX_TOOLS:,} tools: it lists more than {MAX_TOOLS:,}")
    return kept, left_out


def _cleaned(raw: Any) -> RawTool:
    """Return what is used of a tool, without characters that nobody sees.

    Raises:
        _UnfitError: they stand where they cannot be taken out, or the tool is too large, or its schema is broken.
    """
    if not isinstance(raw, dict) or not isinstance(raw.get("name"), str):
        raise _UnfitError("it has no name")
    name = raw["name"]
    if not _NAME.fullmatch(name) or not name.strip() or any(letter in name for letter in _BLANK_LETTERS):
        raise _UnfitError("a tool's name may have up to 128 letters, digits, spaces and _ - . / :")
    prose = {key: raw[key][:MAX_DESCRIPTION] for key in ("title", "description") if isinstance(raw.get(key), str)}
    rest = {key: raw[key] for key in ("inputSchema", "annotations", "_meta") if raw.get(key) is not None}
    if len(json.dumps(rest)) > MAX_DEFINITION:
        raise _UnfitError(f"its definition is larger than {MAX_DEFINITION:,} characters")
    schema = _visible(rest.get("inputSchema"))
    if isinstance(schema, dict) and (flaw := schema_flaw(schema)):
        raise _UnfitError(f"its schema is broken: {flaw}")
    rest.pop("inputSchema", None)
    return {"name": name, "inputSchema": schema, **_without_hidden({**prose, **rest})}


def _visible(value: Any) -> Any:
    """Return a schema with its descriptions cleaned; names and values must be as the server takes them."""
    match value:
        case str() if _without_hidden(value) != value:
            raise _UnfitError(f"its schema has characters that cannot be seen: {ascii(value)[:60]}")
        case list():
            return [_visible(inner) for inner in value]
        case dict():
            if not all(_is_seen(char) for key in value for char in key):
                raise _UnfitError(f"its schema has a name that cannot be seen: {ascii([*value])[:60]}")
            return {
                key: _without_hidden(inner) if key in _PROSE and isinstance(inner, str) else _visible(inner)
                for key, inner in value.items()
            }
    return value


def _without_hidden(value: Any) -> Any:
    """Return texts, wherever they stand, without what steers a terminal, turns letters around, or is not seen."""
    match value:
        case str():
            return "".join(char for char in value if char in "\n\t" or _is_seen(char))
        case list():
            return [_without_hidden(inner) for inner in value]
        case dict():
            return {_without_hidden(key): _without_hidden(inner) for key, inner in value.items()}
    return value


def _is_seen(char: str) -> bool:
    return char.isprintable() and char not in _BLANK_LETTERS
