"""What a value may be read as without loss."""

import json
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NoReturn

MAX_JSON_TEXT = 100_000

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,30})(?:\.[0-9]{1,30})?")


def readings(value: Any, options: Sequence[Any] = ()) -> list[Any]:
    """Return what the value may be read as, the nearest first: `"5"` as 5, `"[5]"` as a list, 5 as `"5"` or `[5]`.

    Args:
        options: those of an enum, of which one may be the value in other letter case.
    """
    scalars = [*_options(value, options), *_scalars(value)]
    from_text = [] if not isinstance(value, str) else from_json(value)
    wrapped = [] if value is None or from_text or isinstance(value, list) else [[one] for one in (value, *scalars)]
    return scalars + from_text + wrapped


def from_json(text: str) -> list[Any]:
    """Return the object or list that a text holds as JSON; nothing where it holds none."""
    if not text.lstrip().startswith(("{", "[")) or len(text) > MAX_JSON_TEXT:
        return []
    try:
        return [json.loads(text, object_pairs_hook=_each_once, parse_constant=_refused)]
    except (ValueError, RecursionError):
        return []


def _options(value: Any, options: Sequence[Any]) -> list[Any]:
    text = value if isinstance(value, str) else json.dumps(value) if isinstance(value, bool) else None
    found = [one for one in options if text and isinstance(one, str) and one.casefold() == text.casefold()]
    return found if len(found) == 1 else []


def _scalars(value: Any) -> list[Any]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return [json.dumps(value)]
    if not isinstance(value, str):
        return []
    if value.casefold() in {"true", "false"}:
        return [value.casefold() == "true"]
    if not _NUMBER.fullmatch(value):
        return []
    whole, _, fraction = value.partition(".")
    if not fraction.strip("0"):
        return [int(whole)]
    return [float(value)] if Decimal(repr(float(value))) == Decimal(value) else []


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice")
    return found


def _refused(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
