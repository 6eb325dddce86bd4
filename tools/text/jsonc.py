"""JSON as people write it in settings files: with comments, and with a comma after the last entry."""

import json
import re
from typing import Any

_STRING = r'"(?:[^"\\]|\\.)*+"'
_COMMENT = re.compile(rf"{_STRING}|//[^\n]*+|/\*.*?\*/", re.DOTALL)
_COMMA = re.compile(rf"{_STRING}|[\[{{,]\s*+,|,(?=\s*+[\]}}])", re.DOTALL)
"""A comma that follows nothing is an error, and is left alone."""


def loads(text: str) -> Any:
    """Return the value of a JSON text, comments and trailing commas allowed.

    Raises:
        json.JSONDecodeError: with line and column in `text` as it was given.
        ValueError, RecursionError: a number or a nesting that Python cannot hold.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return json.loads(plain(text))


def plain(text: str) -> str:
    """Return the text as plain JSON; every other character keeps its place."""
    return _COMMA.sub(_last_comma, _COMMENT.sub(_blank, text))


def _blank(match: re.Match[str]) -> str:
    return match[0] if match[0].startswith('"') else re.sub(r"[^\n]", " ", match[0])


def _last_comma(match: re.Match[str]) -> str:
    return " " if match[0] == "," else match[0]
