"""Completions of user input in the chat: commands, tools, parameters, values and paths."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from heapq import nsmallest
from operator import attrgetter
from pathlib import Path
from typing import Any

from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.spec.tool_spec import ToolSpec, types_of
from packetgate.tools.typed_calls import (
    command_names,
    is_place,
    positional,
    render_value,
    text_before_cursor,
    tools_named,
)

MAX_PATHS = 200
_LAST = re.compile(r"(?:\S+=)?(?:\"(?:[^\"\\]|\\.)*|\S*)\Z", re.DOTALL)
"""The token that is being typed; a quoted value may contain spaces."""


def completions(
    text: str, commands: Mapping[str, str], catalogue: Catalogue, root: Path
) -> Iterator[tuple[str, str, str]]:
    """Yield each completion of a line's last token, with the token that it replaces and its meaning.

    Args:
        text: the line up to the cursor.
        commands: the meaning of each command of the chat.
        root: the folder of relative paths.
    """
    first, _, rest = text.partition(" ")
    if not first.startswith("/"):
        return
    if first == text:
        tools = {f"/{short}": catalogue[name].brief for name, short in command_names(catalogue).items()}
        known = {**tools, **commands}
        yield from ((name, text, known[name]) for name in sorted(known) if name.startswith(text.casefold()))
        return
    tools_meant = tools_named(first[1:], catalogue)
    match = _LAST.search(text)
    if len(tools_meant) != 1 or match is None:
        return
    spec, token = catalogue[tools_meant[0]], match[0]
    name, equals, value = token.partition("=")
    if equals and name in spec.parameters:
        values = _values(spec, name, value, root)
        yield from ((f"{name}={render_value(spec, name, one)}", token, "") for one in values)
        return
    places = [one for one in positional(spec) if is_place(one)]
    paths = _paths(token, root) if places and token else ()
    yield from ((render_value(spec, places[0], one), token, "") for one in paths)
    for one, schema in spec.parameters.items():
        if one.startswith(token) and not re.search(rf"\s{re.escape(one)}=", f" {rest}"):
            yield f"{one}=", token, str(schema.get("description", ""))


def _values(spec: ToolSpec, name: str, value: str, root: Path) -> Iterator[Any]:
    schema = spec.parameters[name]
    choices = schema.get("enum") or ([True, False] if "boolean" in types_of(schema) else [])
    typed = text_before_cursor(value)
    yield from (one for one in choices if (one if isinstance(one, str) else json.dumps(one)).startswith(typed))
    if not choices and is_place(name):
        yield from _paths(value, root)


def _paths(typed: str, root: Path) -> Iterator[str]:
    folder, slash, start = text_before_cursor(typed).rpartition("/")
    try:
        with os.scandir(root / f"{folder}{slash}") as entries:
            found = [one for one in entries if one.name.startswith(start) and (start or not one.name.startswith("."))]
    except OSError:
        return
    for one in nsmallest(MAX_PATHS, found, key=attrgetter("name")):
        is_folder = os.path.isdir(one.path)  # noqa: PTH112  raises no error
        yield f"{folder}{slash}{one.name}{'/' if is_folder else ''}"
