"""Convert arguments of a wrong type to the type that the schema requires, without loss.

The candidates depend on the value alone; validation selects among them. So references and alternatives in a schema need
no special rules.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, NoReturn

from jsonschema_rs import ValidationError

from packetgate.tools.checks.validation import value_flaws
from packetgate.tools.spec.tool_spec import ToolSpec

MAX_FLAWS = 64
"""Wrong values in a call above which none is converted."""
MAX_PLANS = 6
ROUNDS = 2
"""The second round converts what the first parsed from JSON text or wrapped in a list."""

MAX_JSON_TEXT = 100_000

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,30})(?:\.[0-9]{1,30})?")

_Path = tuple[str | int, ...]


def coerced(spec: ToolSpec, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments; each parameter is unchanged, or converted and valid. Valid values are never changed."""
    given = dict(params)
    try:
        flaws = first = value_flaws(spec, given)
        now = given
        for _ in range(ROUNDS):
            if not 0 < len(flaws) <= MAX_FLAWS:
                break
            now = _round(spec, now, flaws)
            flaws = value_flaws(spec, now)
        wrong = wrong_names(flaws)
        repaired = {name: given[name] if name in wrong else value for name, value in now.items()}
        changed = {name for name, value in repaired.items() if value is not given[name]}
        flaws = value_flaws(spec, repaired) if changed else first
    except ValueError:  # the schema is broken, or a value is nested too deeply
        return given
    return given if wrong_names(flaws) & changed or _at_root(flaws) > _at_root(first) else repaired


def wrong_names(flaws: Iterable[ValidationError]) -> set[str]:
    """Return the names of the invalid parameters."""
    return {str(path[0]) for path in map(_path, flaws) if path}


def _round(spec: ToolSpec, params: dict[str, Any], flaws: Sequence[ValidationError]) -> dict[str, Any]:
    repaired: set[_Path] = set()
    for flaw in flaws:
        path = _path(flaw)
        if any(path[:depth] in repaired for depth in range(len(path) + 1)):
            continue
        for trial in _trials(params, flaw):
            if path not in map(_path, value_flaws(spec, trial)):
                params = trial
                repaired.add(path)
                break
    return params


def _trials(params: dict[str, Any], flaw: ValidationError) -> Iterator[dict[str, Any]]:
    for places in _plans(flaw):
        readings = {_path(one): choices for one in places if (choices := _readings_at(params, one))}
        for rank in range(max(map(len, readings.values()), default=0)):
            trial = params
            for path, choices in readings.items():
                trial = _replaced(trial, path, choices[min(rank, len(choices) - 1)])
            yield trial


def _plans(flaw: ValidationError) -> list[Sequence[ValidationError]]:
    plans: list[Sequence[ValidationError]] = [[flaw]]
    for choice in _choices(flaw):
        plans += [choice, [leaf for one in choice for leaf in _leaves(one)]]
    return plans[:MAX_PLANS]


def _leaves(flaw: ValidationError) -> Sequence[ValidationError]:
    depth = len(flaw.instance_path)
    inside = [choice for choice in _choices(flaw) if any(len(one.instance_path) > depth for one in choice)]
    return [leaf for one in inside[0] for leaf in _leaves(one)] if inside else [flaw]


def _choices(flaw: ValidationError) -> Sequence[Sequence[ValidationError]]:
    return getattr(flaw.kind, "context", None) or ()


def _path(flaw: ValidationError) -> _Path:
    return tuple(flaw.instance_path)


def _at_root(flaws: Iterable[ValidationError]) -> int:
    return sum(not flaw.instance_path for flaw in flaws)


def _readings_at(params: Mapping[str, Any], flaw: ValidationError) -> list[Any]:
    value: Any = params
    for step in flaw.instance_path:
        value = value[step]
    return _readings(value, getattr(flaw.kind, "options", ()))


def _replaced(holder: Any, path: _Path, value: Any) -> Any:
    if not path:
        return value
    copy = holder.copy()
    copy[path[0]] = _replaced(holder[path[0]], path[1:], value)
    return copy


def _readings(value: Any, options: Sequence[Any] = ()) -> list[Any]:
    scalars = [*_options(value, options), *_scalars(value)]
    from_text = [] if not isinstance(value, str) else from_json(value)
    wrapped = [] if value is None or from_text or isinstance(value, list) else [[one] for one in (value, *scalars)]
    return scalars + from_text + wrapped


def from_json(text: str) -> list[Any]:
    """Return the JSON object or list of a text in a list; empty if it is none."""
    if not text.lstrip().startswith(("{", "[")) or len(text) > MAX_JSON_TEXT:
        return []
    try:
        return [json.loads(text, object_pairs_hook=_each_once, parse_constant=_refused)]
    except (ValueError, RecursionError):
        return []


def _options(value: Any, options: Sequence[Any]) -> list[Any]:
    text = value if isinstance(value, str) else json.dumps(value) if isinstance(value, bool) else None
    choices = [one for one in options if text and isinstance(one, str) and one.casefold() == text.casefold()]
    return choices if len(choices) == 1 else []


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
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("a key stands twice")
    return values


def _refused(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
