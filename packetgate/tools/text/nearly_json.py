"""Read text that is nearly JSON, as models write it: with comments, in single quotes, in a fence, or as a Python value.

Each form has a grammar, so that nothing is guessed: a text is parsed literally, or not at all.
"""

import ast
import io
import json
import re
import tokenize
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from packetgate.tools.text.strict_json import strict_json

MAX_NEARLY_JSON = 4_000
"""Longest text that is parsed as anything but JSON: json5 takes a tenth of a second for this length."""
_MAX_JSON = 100_000
_FENCE = re.compile(r"```[\w-]*[ \t]*\n(?P<inside>.*?)\n?```", re.DOTALL)
_BEGINS_VALUE = re.compile(r"[\[{\"']")
_QUOTE, _TYPOGRAPHIC = re.compile(r"[\"']"), dict.fromkeys(map(ord, "\u201c\u201d\u201e"), '"')
_WINDOWS_PATH = re.compile(r"""(["'][A-Za-z]:)(\\[^"'\n]*)(["'])""")
_FOREIGN_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*\\[^\"'\\/bfnrtu]")
"""An escape that readers resolve differently, as in a Windows path."""


def read_nearly_json(text: str) -> Any:
    """Return the JSON value that a text contains.

    Raise ValueError if it is not JSON in any known form, has a key twice, or contains a value that JSON does not have.
    """
    text = text.strip()
    if len(text) > _MAX_JSON:
        raise ValueError(f"the text has more than {_MAX_JSON:,} characters")
    if fenced := _FENCE.fullmatch(text):
        text = fenced["inside"].strip()
    try:
        return strict_json(text)
    except ValueError as error:
        if len(text) > MAX_NEARLY_JSON:
            raise
        problem = error
    if not _QUOTE.search(text):
        text = text.translate(_TYPOGRAPHIC)
    if paths := _with_escaped_paths(text):
        text = paths
    readers: list[Callable[[str], Any]] = [_first_of_equal]
    if not _FOREIGN_ESCAPE.search(text):
        readers += [_json5, _python]
    for read in readers:
        try:
            return strict_json(json.dumps(read(text), ensure_ascii=False, allow_nan=False))
        except (ValueError, TypeError, SyntaxError, tokenize.TokenError, RecursionError, MemoryError):
            continue
    raise ValueError(f"it is not JSON: {problem}")


def read_arguments(text: str) -> dict[str, Any]:
    """Return the arguments of a call, which may be in a JSON string; an empty string and null mean no arguments.

    Raise ValueError if the text is not nearly a JSON object.
    """
    value = read_nearly_json(text) if text.strip() else None
    if isinstance(value, str):
        value = read_nearly_json(value) if value.strip() else None
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
        value = value[0]
    if value is not None and not isinstance(value, dict):
        raise ValueError("the arguments are not a JSON object")
    return value or {}


def _with_escaped_paths(text: str) -> str:
    """Return the text with doubled backslashes in texts that begin as a Windows path; empty if there is none."""
    found = _WINDOWS_PATH.sub(lambda match: match[1] + re.sub(r"\\+", r"\\\\", match[2]) + match[3], text)
    return found if found != text else ""


def _first_of_equal(text: str) -> Any:
    """Return the value of a text that repeats one JSON text; words may follow."""
    _, end = json.JSONDecoder(strict=False).raw_decode(text)
    first, rest = strict_json(text[:end]), text[end:].lstrip()
    while rest and _BEGINS_VALUE.search(rest):
        _, end = json.JSONDecoder(strict=False).raw_decode(rest)
        if strict_json(rest[:end]) != first:
            raise ValueError("the text contains several values")
        rest = rest[end:].lstrip()
    return first


def _json5(text: str) -> Any:
    import json5

    return json5.loads(text, allow_duplicate_keys=False)


def _python(text: str) -> Any:
    kinds = [one.type for one in tokenize.generate_tokens(io.StringIO(text).readline)]
    if (tokenize.STRING, tokenize.STRING) in pairwise(kinds):
        raise ValueError("two strings follow each other")
    tree = ast.parse(text, mode="eval")
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            keys = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
            if len({*keys}) < len(keys) or not all(isinstance(key, str) for key in keys):
                raise ValueError("a key occurs twice, or is not text")
    return ast.literal_eval(tree)
