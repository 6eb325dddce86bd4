"""Decode JSON that can be stored: no key twice, no number beyond 64 bits, no half of a surrogate pair."""

import json
import math
from typing import Any


def strict_json(text: str) -> Any:
    """Return the value of a JSON text; strings may contain raw control characters.

    Raise ValueError if the text is not one JSON value, or contains a value that cannot be stored.
    """
    try:
        value = _DECODER.decode(text)
        json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        near = " ".join(text[max(0, error.pos - 20) : error.pos + 10].split())
        raise ValueError(f"the JSON is invalid near {near!r}: {error.msg}") from error
    except RecursionError as error:
        raise ValueError("the JSON is nested too deeply") from error
    except UnicodeEncodeError as error:
        raise ValueError("a string in the JSON contains half a surrogate pair") from error
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):  # ambiguous
        names = [name for name, _ in pairs]
        twice = next(name for at, name in enumerate(names) if name in names[:at])
        raise ValueError(f"the JSON has the key {twice[:60]!r} twice in one object")
    return value


def _int(digits: str) -> int:
    value = int(digits) if len(digits) <= 20 else 1 << 64
    if not -(1 << 63) <= value < 1 << 64:
        raise ValueError("a number in the JSON does not fit 64 bits")
    return value


def _float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"the JSON contains {digits[:20]}, which is not a JSON number")
    return value


_DECODER = json.JSONDecoder(
    strict=False,  # models put raw line breaks into strings
    object_pairs_hook=_object,
    parse_int=_int,
    parse_float=_float,
    parse_constant=_float,
)
