"""Read settings files in TOML or in JSON with comments, and change one key of a JSON file."""

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
_GAP = re.compile(r"[\s,]*+")


def read_json_text(text: str) -> Any:
    """Return the value of a JSON text; comments and trailing commas are allowed.

    Raises:
        json.JSONDecodeError: the text is not valid JSON; has the line and column in `text`.
        ValueError, RecursionError: a number or a nesting that Python cannot hold.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return json.loads(_plain_json(text))


DOCUMENT_READERS: Mapping[DocumentFormat, Callable[[str], Any]] = {"JSON": read_json_text, "TOML": tomllib.loads}


def replace_json_value(text: str, key: str, value: Any) -> str:
    """Return the text of a JSON object with `value` under `key`. All other text stays unchanged, including comments.

    Raises:
        ValueError: `text` is not the text of an object.
    """
    plain = _plain_json(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    start, last, found = plain.index("{") + 1, 0, None
    at = _skip_gap(plain, start)
    while plain[at] == '"':
        name, at = json.JSONDecoder().raw_decode(plain, at)
        at = _skip_gap(plain, plain.index(":", at) + 1)
        _, last = json.JSONDecoder().raw_decode(plain, at)
        found = (at, last) if name == key else found
        at = _skip_gap(plain, last)
    written = json.dumps(value, indent=2, ensure_ascii=False).replace("\n", f"{newline}  ")
    if found:
        return text[: found[0]] + written + text[found[1] :]
    if last:
        return f"{text[:last]},{newline}  {json.dumps(key)}: {written}{text[last:]}"
    end = "" if "\n" in text[start:at] else newline
    return f"{text[:start]}{newline}  {json.dumps(key)}: {written}{end}{text[start:]}"


def _plain_json(text: str) -> str:
    """Return the text with blanks for comments and trailing commas, so that no other character moves."""
    without_comments = _COMMENT.sub(lambda match: match[0] if match[0][0] == '"' else _blank(match[0]), text)
    return _COMMA.sub(lambda match: " " if match[0] == "," else match[0], without_comments)


def _blank(comment: str) -> str:
    return re.sub(r"[^\n]", " ", comment)


def _skip_gap(text: str, at: int) -> int:
    match = _GAP.match(text, at)
    return match.end() if match else at
