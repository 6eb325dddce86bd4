"""Find what `it`, `that file` and `the second one` mean: arguments and results of the session's calls."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from packetgate.reflex.values.dates import find_time_zone
from packetgate.state.errors import PacketgateError
from packetgate.state.origins import ArgumentRole
from packetgate.state.routing import ToolCall
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.text.nearly_json import read_nearly_json
from packetgate.tools.text.reading import mentions_in
from packetgate.tools.text.roles import role_of

_MAX_CHARS = 100
_NAMES = ("path", "file", "filename", "name", "title", "url", "uri", "id")
"""Fields that name an entry of a list, in order of preference."""
_BULLET = re.compile(r"\s*(?:[-*•]\s+|\d+[.)]\s+|\[\w+\]\s+)?")


def object_of(call: ToolCall) -> str:
    """Return the file, page or other thing that a call was about; empty if that is unclear."""
    targets = [value for name, value in call.params.items() if isinstance(value, str) and _is_target(name, value)]
    listed = listed_by(call)
    if targets and ("." in targets[-1].rpartition("/")[2] or len(listed) != 1):
        return targets[-1]  # the last one is where a file was copied or moved to
    return listed[0] if len(listed) == 1 else ""


def listed_by(call: ToolCall) -> Sequence[str]:
    """Return the names of the entries that a call returned, without duplicates."""
    if call.status is not ToolExecutionStatus.EXECUTED or call.result is None:
        return ()
    fields, text = call.result.fields, call.result.output
    names = [*_names_in(fields)]
    if not names and text[:1] in ("[", "{"):
        names = [*_names_in(_read(text))]
    return tuple(dict.fromkeys(names or _paths_in(text)))


def _is_target(name: str, value: str) -> bool:
    if "\n" in value or role_of((name,), {}, None) is ArgumentRole.PAYLOAD:
        return False
    return mentions_in(value).has_target and find_time_zone(value) != value


def _names_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        value = next((one for one in value.values() if isinstance(one, list) and one), [])
    for entry in value if isinstance(value, list) else []:
        named = [entry.get(name) for name in _NAMES] if isinstance(entry, dict) else [entry]
        name = next((one for one in named if isinstance(one, str) and one), "")
        if name and len(name) <= _MAX_CHARS and "\n" not in name:
            yield name


def _read(text: str) -> Any:
    try:
        return read_nearly_json(text)
    except (PacketgateError, ValueError):
        return None


def _paths_in(text: str) -> Iterator[str]:
    for line in text.splitlines():
        bullet = _BULLET.match(line)
        rest = line[bullet.end() :] if bullet else line
        path = next(iter(mentions_in(rest).paths), "")
        if path and rest.startswith(path):
            yield path
