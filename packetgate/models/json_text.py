"""Parse one JSON object or list at a position of a longer text."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from packetgate.tools.text.strict_json import strict_json

_MAX_DEPTH = 100
"""Deepest nesting that is parsed: pydantic and the checkpoint's encoding fail at 255."""

_TAG = r"(?:\w{1,12}[:_])?(?:think|thinking|thought|reasoning)(?::\w{1,16})?"
THOUGHT_BEGIN = rf"<{_TAG}>|\[THINK\]|\u25c1think\u25b7|<\|channel>"
THOUGHT_END = rf"</{_TAG}>|\[/THINK\]|\u25c1/think\u25b7|<channel\|>"
"""Patterns of the marks in `THOUGHTS` and their variants, such as `<seed:think>`."""

_THOUGHT_END = re.compile(THOUGHT_END, re.IGNORECASE)
_TOKENS = re.compile(rf'{THOUGHT_END}|"(?:[^"\\]|\\.)*+"?|[{{}}\[\]]', re.DOTALL | re.IGNORECASE)
_CLOSING = {"{": "}", "[": "]"}


@dataclass(frozen=True)
class JsonReading:
    """A value in a text, the position of its end, and any problem."""

    value: Any
    """A dict or a list, or a tuple of calls; None if the JSON is invalid."""
    end: int
    """The position after the value; after invalid JSON, the position where reading continues."""
    problem: str = ""
    """The problem as a message for the model; empty if the value is valid."""
    is_marked: bool = False
    """Whether marks of a call's syntax surround the value."""


def read_json_at(text: str, at: int, read: Callable[[str], Any] = strict_json) -> JsonReading:
    """Return the JSON value at a position; strings may contain raw control characters.

    Args:
        read: decodes the value, such as `read_nearly_json`.
    """
    end, problem = _extent(text, at)
    if problem:
        return JsonReading(None, end, problem)
    try:
        return JsonReading(read(text[at:end]), end)
    except ValueError as error:
        thought = _THOUGHT_END.search(text, at, end)
        return JsonReading(None, thought.start() if thought else end, str(error))


def whole_json(text: str) -> Any:
    """Decode a text that is one JSON value and nothing else.

    Raise ValueError if the text is not one JSON value, has a key twice, or contains a number or string that cannot
    be stored.
    """
    text = text.strip()
    if not text.startswith(("{", "[")):
        return strict_json(text)
    reading = read_json_at(text, 0)
    if reading.value is None or reading.end != len(text):
        raise ValueError(reading.problem or "text follows the JSON")
    return reading.value


def _extent(text: str, at: int) -> tuple[int, str]:
    """Return the end of the value at a position, and why the value cannot be parsed."""
    depth = nesting = deepest = 0
    opening = text[at]
    for token in _TOKENS.finditer(text, at):
        mark = token[0]
        if mark[0] == '"':
            continue
        if len(mark) > 1:
            return token.start(), "the JSON breaks off where the thought ends"
        nesting += 1 if mark in "{[" else -1
        deepest = max(deepest, nesting)
        depth += (mark == opening) - (mark == _CLOSING[opening])  # unmatched brackets of the other kind are ignored
        if depth == 0:
            return token.end(), f"the JSON is nested more than {_MAX_DEPTH} levels deep" if deepest > _MAX_DEPTH else ""
    # A quote inside a thought may have begun this string: then reading continues at the end of the thought.
    last = max((found.start() for found in _THOUGHT_END.finditer(text, at)), default=len(text))
    return last, "the answer breaks off within the JSON"


Path = tuple[str | int, ...]
_SPACE = re.compile(r"[ \t\r\n]*")
_PLAIN_DECODER = json.JSONDecoder(strict=False)


def json_spans(text: str, at: int = 0, path: Path = ()) -> Iterator[tuple[Path, int, int]]:
    """Yield the path, the start and the end of each value of a JSON text, outer values first.

    Raise ValueError if the text is not JSON.
    """
    start = _after_space(text, at)
    value, end = _PLAIN_DECODER.raw_decode(text, start)
    yield path, start, end
    if not isinstance(value, dict | list):
        return
    at, number = _after_space(text, start + 1), 0
    while text[at] not in "}]":
        key: str | int = number
        if isinstance(value, dict):
            key, at = _PLAIN_DECODER.raw_decode(text, at)
            at = _after_space(text, at) + 1  # the colon
        spans = list(json_spans(text, at, (*path, key)))
        yield from spans
        at = _after_space(text, spans[0][2])
        at = _after_space(text, at + 1) if text[at] == "," else at
        number += 1


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at
