"""Read settings files in TOML or in JSON with comments."""

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from typing import Any, Literal

DocumentFormat = Literal["JSON", "TOML"]

_STRING = r'"(?:[^"\\]|\\.)*+"'
_COMMENT = re.compile(rf"{_STRING}|//[^\n]*+|/\*.*?\*/", re.DOTALL)
_COMMA = re.compile(rf"{_STRING}|[\[{{,]\s*+,|,(?=\s*+[\]}}])", re.DOTALL)
"""A string, or a comma before a closing bracket. A comma after an opening bracket or a comma is an error and stays."""


def read_json_text(text: str) -> Any:
    """Return the value of a JSON text; comments and trailing commas are allowed.

    Raises:
        json.JSONDecodeError: the text is not valid JSON; has the line and column in `text`.
        ValueError, RecursionError: a number or a nesting that exceeds Python's limits.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return json.loads(_plain_json(text))


DOCUMENT_READERS: Mapping[DocumentFormat, Callable[[str], Any]] = {"JSON": read_json_text, "TOML": tomllib.loads}


def _plain_json(text: str) -> str:
    """Return the text with blanks for comments and trailing commas, so that no other character moves."""
    without_comments = _COMMENT.sub(lambda match: match[0] if match[0][0] == '"' else _blank(match[0]), text)
    return _COMMA.sub(lambda match: " " if match[0] == "," else match[0], without_comments)


def _blank(comment: str) -> str:
    return re.sub(r"[^\n]", " ", comment)
