"""Reading one JSON object or list in a longer text, strictly or in the loose spelling of models."""

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from packetgate.models.decoding.formats import THOUGHTS

MAX_DEPTH = 100
"""pydantic and the checkpoint's encoding end at 255."""

THOUGHT_END = "|".join(re.escape(thought.end) for thought in THOUGHTS)

_STRUCTURE = re.compile(rf'{THOUGHT_END}|["{{}}\[\]]|\\.', re.DOTALL | re.IGNORECASE)

_TOKEN = re.compile(
    r"""\s*+(?:
        (?P<key>[^\W\d][\w$-]*+)(?=\s*+[:=])
      | (?P<raw><\|"\|>.*?<\|"\|>|<escape>.*?<escape>)
      | (?P<bare>[\w$.+-]++)
      | (?P<string>"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+')
      | (?P<comment>//[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z))
      | (?P<mark>[{}\[\](),:=])
      | (?P<unclosed>["'])
    )""",
    re.VERBOSE | re.DOTALL,
)
_QUOTE = re.compile(r"""\\(.)|\"""", re.DOTALL)
_WORDS = {"True": "true", "False": "false", "None": "null"}
_MARKS = frozenset("{}[],:")
_OF_CALLS = {"(": "{", ")": "}", "=": ":"}


@dataclass(frozen=True)
class Reading:
    """What was read at a position of a text."""

    value: Any
    """A dict or a list; None when it is broken."""
    end: int
    """Position behind the value, or behind all of a broken value, so that no part of it counts."""
    problem: str = ""
    """What is broken, in words for the model."""


Reader = Callable[[str, int], Reading]
"""Reads the object or list that begins at a position of a text."""


def read_strict(text: str, at: int) -> Reading:
    """Read standard JSON; strings may hold raw control characters."""
    end, problem, thought = _extent(text, at)
    if not problem:
        try:
            return Reading(_decoded(text[at:end]), end)
        except ValueError as error:
            problem = str(error)
    return Reading(None, end if thought is None else thought, problem)


def read_loose(text: str, at: int) -> Reading:
    """Read JSON with trailing commas, single quotes, bare keys, comments, or Python's True, False, None."""
    loose = read_spelled(text, at)
    if loose.value is not None:
        return loose
    skipped, _, thought = _extent(text, at)
    return Reading(None, max(loose.end, skipped if thought is None else thought), loose.problem)


def read_spelled(text: str, at: int) -> Reading:
    """Read loose JSON, or named arguments in parentheses; the end of a broken value is unknown."""
    rewritten, end = _to_json(text, at)
    strict = Reading(None, 0) if rewritten is None else read_strict(rewritten, 0)
    return Reading(strict.value, end, strict.problem)


def whole_value(text: str) -> Any:
    """Decode a text that is one JSON value and nothing else.

    Raises:
        ValueError: it is not.
    """
    text = text.strip()
    if not text.startswith(("{", "[")):
        return _decoded(text)
    reading = read_strict(text, 0)
    if reading.value is None or reading.end != len(text):
        raise ValueError(reading.problem or "something follows the JSON")
    return reading.value


def whole_object(text: str) -> dict[str, Any]:
    """Decode a text that is one JSON object and nothing else.

    Raises:
        ValueError: it is not.
    """
    value = whole_value(text)
    if not isinstance(value, dict):
        raise ValueError("it is no JSON object")  # noqa: TRY004  one error for all that is none
    return value


def once_decoded(text: str) -> str:
    """Decode a JSON string once, as some servers encode arguments twice; return other text unchanged."""
    try:
        value = whole_value(text)
    except ValueError:
        return text
    return value if isinstance(value, str) else text


def _decoded(text: str) -> Any:
    try:
        value = _DECODER.decode(text)
        json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        near = " ".join(text[max(0, error.pos - 20) : error.pos + 10].split())
        raise ValueError(f"its JSON is broken near {near!r}: {error.msg}") from error
    except UnicodeEncodeError as error:
        raise ValueError("a string of its JSON holds half a surrogate pair") from error
    return value


def _to_json(text: str, at: int) -> tuple[str | None, int]:
    # Only the spelling of single tokens changes: the real decoder then refuses what is no JSON even so. No library at
    # hand knows both JSON5 and Python's words, and refuses a key that is given twice.
    written: list[str] = []
    depth, is_call = 0, text[at] == "("
    while token := _TOKEN.match(text, at):
        kind = str(token.lastgroup)
        if kind == "unclosed":
            return None, len(text)
        if kind in {"key", "raw", "bare", "string"} and written and written[-1] not in _MARKS:
            return None, at  # two values side by side: a comma is missing, or this is prose
        at, piece = token.end(), token[kind]
        if kind == "mark" and piece in _OF_CALLS:
            if not is_call:
                return None, at
            piece = _OF_CALLS[piece]
        if kind == "mark" and piece in "}]" and written[-1] == "," and written[-2] not in {"{", "[", ","}:
            written.pop()
        if kind != "comment":
            written.append(_rewritten(kind, piece))
        depth += (piece in {"{", "["}) - (piece in {"}", "]"})
        if depth == 0:
            return " ".join(written), at
    return None, at


def _rewritten(kind: str, piece: str) -> str:
    match kind:
        case "string":
            return '"' + _QUOTE.sub(_in_double_quotes, piece[1:-1]) + '"'
        case "key":
            return json.dumps(piece)
        case "raw":
            return json.dumps(piece[piece.index(">") + 1 : piece.rindex("<")])
    return _WORDS.get(piece, piece)


def _in_double_quotes(match: re.Match[str]) -> str:
    if match[1] is None:
        return '\\"'
    return "'" if match[1] == "'" else match[0]


def _extent(text: str, at: int) -> tuple[int, str, int | None]:
    """Return where the value ends, why it cannot be decoded if that shows already, and the first end of a thought."""
    # What a string holds does not count; but when the value proves broken, its quotes prove nothing, and a thought may
    # have ended there. A backslash is skipped with what follows it, in strings and out of them, so that every start
    # sees the same quotes: that keeps many broken starts from each reading the whole text.
    opening, closing = ("{", "}") if text[at] == "{" else ("[", "]")
    depth = nesting = deepest = 0
    quoted, thought = False, None
    for match in _STRUCTURE.finditer(text, at):
        mark = match[0]
        if mark == '"':
            quoted = not quoted
        elif len(mark) > 2:
            if not quoted:
                return match.start(), "its JSON breaks off where the thought ends", None
            thought = match.start() if thought is None else thought
        elif not quoted and len(mark) == 1:
            nesting += 1 if mark in "{[" else -1
            deepest = max(deepest, nesting)
            depth += (mark == opening) - (mark == closing)
            if depth == 0:
                too_deep = f"its JSON is nested more than {MAX_DEPTH} deep" if deepest > MAX_DEPTH else ""
                return match.end(), too_deep, thought
    return len(text), "it breaks off in the middle of its JSON", thought


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):  # nobody can say which was meant, and readers differ in which they take
        name = next(name for at, (name, _) in enumerate(pairs) if name in {one for one, _ in pairs[:at]})
        raise ValueError(f"its JSON names {name[:60]!r} twice in one object")
    return value


def _int(digits: str) -> int:
    value = int(digits) if len(digits) <= 20 else 1 << 64
    if not -(1 << 63) <= value < 1 << 64:
        raise ValueError("a number of its JSON is larger than 64 bits")
    return value


def _float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"its JSON holds {digits[:20]}, which is no JSON number")
    return value


_DECODER = json.JSONDecoder(
    strict=False,  # models put raw line breaks into strings
    object_pairs_hook=_object,
    parse_int=_int,
    parse_float=_float,
    parse_constant=_float,
)
