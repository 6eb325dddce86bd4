"""Finding the JSON object in what a model wrote: with a real decoder, never with a pattern over JSON."""

import json
from typing import Any

from state.errors import DecisionError

THINK, END_THINK = "<think>", "</think>"

_DECODER = json.JSONDecoder(strict=False)  # models put raw line breaks into strings


def decode_json(text: str) -> dict[str, Any]:
    """Return the last complete JSON object: drafts and examples come before the answer.

    Raises:
        DecisionError: there is none.
    """
    objects = find_json_objects(text)
    if objects:
        return objects[-1]
    if not text.strip():
        raise DecisionError("the answer is empty: a JSON object was expected")
    raise DecisionError(f"the answer holds no complete JSON object: {shorten(text)!r}")


def find_json_objects(text: str) -> list[dict[str, Any]]:
    """Return every complete outermost JSON object of an answer, in order.

    Thinking holds drafts, not answers, so what stands in a `<think>` block, or before a `</think>` whose opening the
    chat template wrote, does not count. A block that is never closed was either cut off or its end forgotten: an
    object counts there only as the very last thing of the text. Parts of a broken or truncated object never count.
    """
    return [value for value, _ in _scan(text)]


def shorten(text: str, limit: int = 120) -> str:
    """Return the text on one line, at most `limit` characters of it."""
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def _scan(text: str) -> list[tuple[dict[str, Any], int]]:
    """Return every object that counts, and where each ends."""
    found: list[tuple[dict[str, Any], int]] = []
    at = 0
    while at < len(text):
        if text.startswith(THINK, at):
            end = text.find(END_THINK, at)
            if end == -1:
                return found + _last_thing(text)
            at = end + len(END_THINK)
        elif text.startswith(END_THINK, at):
            found.clear()
            at += len(END_THINK)
        elif text[at] == "{" and not text.startswith("{{", at):  # of a template's doubled brace, the inner one
            value, at = _object_at(text, at)
            if value is not None:
                found.append((value, at))
        else:
            at += 1
    return found


def _last_thing(text: str) -> list[tuple[dict[str, Any], int]]:
    """Return the object that a thought never closed ends with, as a list of none or one."""
    thought = text.rpartition(THINK)[2].rstrip("` \t\r\n")
    return [(value, end) for value, end in _scan(thought) if end == len(thought)]


def _object_at(text: str, at: int) -> tuple[dict[str, Any] | None, int]:
    """Decode the object whose brace stands at `at`; return it (None when broken) and where to look on."""
    try:
        value, end = _DECODER.raw_decode(text, at)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()  # NaN and lone surrogates pass the decoder
    except (ValueError, RecursionError):
        return None, _after_broken(text, at)
    return value, end


def _after_broken(text: str, at: int) -> int:
    """Return where a broken object ends, so that its inner objects are not taken for the answer."""
    limit = text.find(END_THINK, at)
    depth, quoted, i = 0, False, at
    while i < (len(text) if limit == -1 else limit):
        char = text[i]
        if quoted and char == "\\":
            i += 1
        elif char == '"':
            quoted = not quoted
        elif not quoted and char in "{}":
            depth += 1 if char == "{" else -1
            if depth == 0:
                return i + 1
        i += 1
    return len(text) if limit == -1 else limit
