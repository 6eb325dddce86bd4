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

from packetgate.tools.checks.validation import value_errors
from packetgate.tools.spec.tool_spec import ToolSpec

MAX_ERRORS = 64
"""If a call has more wrong values than this, no value is converted."""
MAX_PLANS = 6
CONVERSION_ROUNDS = 2
"""Number of rounds. The second converts values that the first parsed from JSON text or wrapped in a list."""

MAX_JSON_TEXT = 100_000

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,30})(?:\.[0-9]{1,30})?")

_Path = tuple[str | int, ...]


def coerce_params(spec: ToolSpec, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments; each parameter is unchanged, or converted and valid. Valid values are never changed."""
    given = dict(params)
    try:
        errors = first = value_errors(spec, given)
        now = given
        for _ in range(CONVERSION_ROUNDS):
            if not 0 < len(errors) <= MAX_ERRORS:
                break
            now = _round(spec, now, errors)
            errors = value_errors(spec, now)
        wrong = wrong_names(errors)
        repaired = {name: given[name] if name in wrong else value for name, value in now.items()}
        changed = {name for name, value in repaired.items() if value is not given[name]}
        errors = value_errors(spec, repaired) if changed else first
    except ValueError:  # the schema is broken, or a value is nested too deeply
        return given
    at_root, at_root_first = (sum(not error.instance_path for error in some) for some in (errors, first))
    is_worse = wrong_names(errors) & changed or at_root > at_root_first
    return given if is_worse else repaired


def wrong_names(errors: Iterable[ValidationError]) -> set[str]:
    """Return the names of the invalid parameters."""
    return {str(path[0]) for path in map(_path, errors) if path}


def _round(spec: ToolSpec, params: dict[str, Any], errors: Sequence[ValidationError]) -> dict[str, Any]:
    repaired: set[_Path] = set()
    for error in errors:
        path = _path(error)
        if any(path[:depth] in repaired for depth in range(len(path) + 1)):
            continue
        for trial in _trials(params, error):
            if path not in map(_path, value_errors(spec, trial)):
                params = trial
                repaired.add(path)
                break
    return params


def _trials(params: dict[str, Any], error: ValidationError) -> Iterator[dict[str, Any]]:
    # errors to repair together: the error itself, or the errors of one alternative of the schema
    plans: list[Sequence[ValidationError]] = [[error]]
    for alternative in _alternatives(error):
        plans += [alternative, [leaf for one in alternative for leaf in _leaves(one)]]
    for plan in plans[:MAX_PLANS]:
        candidates = {_path(one): found for one in plan if (found := _candidates_at(params, one))}
        for rank in range(max(map(len, candidates.values()), default=0)):
            trial = params
            for path, found in candidates.items():
                trial = _replaced(trial, path, found[min(rank, len(found) - 1)])
            yield trial


def _leaves(error: ValidationError) -> Sequence[ValidationError]:
    depth = len(error.instance_path)
    inside = [choice for choice in _alternatives(error) if any(len(one.instance_path) > depth for one in choice)]
    return [leaf for one in inside[0] for leaf in _leaves(one)] if inside else [error]


def _alternatives(error: ValidationError) -> Sequence[Sequence[ValidationError]]:
    return getattr(error.kind, "context", None) or ()


def _path(error: ValidationError) -> _Path:
    return tuple(error.instance_path)


def _replaced(holder: Any, path: _Path, value: Any) -> Any:
    if not path:
        return value
    copy = holder.copy()
    copy[path[0]] = _replaced(holder[path[0]], path[1:], value)
    return copy


def _candidates_at(params: Mapping[str, Any], error: ValidationError) -> list[Any]:
    value: Any = params
    for step in error.instance_path:
        value = value[step]
    scalars = [*_options(value, getattr(error.kind, "options", ())), *_scalars(value)]
    parsed = from_json(value) if isinstance(value, str) else []
    wrapped = [] if value is None or parsed or isinstance(value, list) else [[one] for one in (value, *scalars)]
    return scalars + parsed + wrapped


def from_json(text: str) -> list[Any]:
    """Return a list with the JSON object or list that a text contains; an empty list for any other text."""
    if not text.lstrip().startswith(("{", "[")) or len(text) > MAX_JSON_TEXT:
        return []
    try:
        return [json.loads(text, object_pairs_hook=_unique_keys, parse_constant=_refused)]
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


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("a key occurs twice")
    return values


def _refused(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
