"""JSON as people write it in settings files: with comments, and with a comma after the last entry."""

import json
import re
from typing import Any

from packetgate.tools.text import yaml

_STRING = r'"(?:[^"\\]|\\.)*+"'
_COMMENT = re.compile(rf"{_STRING}|'(?:[^'\\\n]|\\.)*+'|//[^\n]*+|/\*.*?\*/|[\u00a0\u200b\ufeff]", re.DOTALL)
"""Also blanks that come with a text copied from a page."""
_COMMA = re.compile(rf"{_STRING}|[\[{{,]\s*+,|,(?=\s*+[\]}}])", re.DOTALL)
"""A comma that follows nothing is an error, and is left alone."""
_NO_ESCAPE = re.compile(r"(?:[^\\]|\\(?:[\"\\/bfnrt]|u[0-9a-fA-F]{4}))*+\\")
"""A string up to a backslash that begins no escape: a path of Windows, as it is typed."""
_SINGLE_BACKSLASH = re.compile(r"\\([\"\\])|\\")


def loads(text: str) -> Any:
    """Return the value of a JSON text, comments and trailing commas allowed.

    What is no JSON even so is read as YAML: names without quotation marks, single ones, and no braces around the whole.

    Raises:
        json.JSONDecodeError: with line and column in `text` as it was given.
        ValueError, RecursionError: a number or a nesting that Python cannot hold.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        bare = plain(text)
    try:
        return json.loads(bare)
    except json.JSONDecodeError as error:
        try:
            value = yaml.loads(re.sub(_STRING, _with_backslashes, bare))
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise error from None
        return value


def _with_backslashes(string: re.Match[str]) -> str:
    """Return a string in which every single backslash stands for itself, if one of them begins no escape."""
    if not _NO_ESCAPE.match(string[0]):
        return string[0]
    return _SINGLE_BACKSLASH.sub(lambda one: one[0] if one[1] else r"\\", string[0])


def plain(text: str) -> str:
    """Return the text as plain JSON; every other character keeps its place."""
    return _COMMA.sub(_last_comma, _COMMENT.sub(_blank, text))


def _blank(match: re.Match[str]) -> str:
    return match[0] if match[0][0] in "\"'" else re.sub(r"[^\n]", " ", match[0])


def _last_comma(match: re.Match[str]) -> str:
    return " " if match[0] == "," else match[0]


def with_value(text: str, key: str, value: Any) -> str:
    """Return the text of an object with another value under a key; all else stays as it is, comments too.

    Raises:
        ValueError: it is not the text of an object.
    """
    whole = plain(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    start, last, found = whole.index("{") + 1, 0, None
    at = _next(whole, start)
    while whole[at] == '"':
        name, at = json.JSONDecoder().raw_decode(whole, at)
        at = _next(whole, whole.index(":", at) + 1)
        _, last = json.JSONDecoder().raw_decode(whole, at)
        found = (at, last) if name == key else found
        at = _next(whole, last)
    written = json.dumps(value, indent=2, ensure_ascii=False).replace("\n", f"{newline}  ")
    if found:
        return text[: found[0]] + written + text[found[1] :]
    if last:
        return f"{text[:last]},{newline}  {json.dumps(key)}: {written}{text[last:]}"
    end = "" if "\n" in text[start:at] else newline
    return f"{text[:start]}{newline}  {json.dumps(key)}: {written}{end}{text[start:]}"


def _next(text: str, at: int) -> int:
    """Return the place of the next character that is neither blank nor a comma."""
    return re.compile(r"[\s,]*+").match(text, at).end()  # type: ignore[union-attr]
