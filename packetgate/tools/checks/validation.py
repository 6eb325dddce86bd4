"""Validate a requested call, explain its problems to the model, and convert values of a wrong type without loss.

A value alone determines its possible conversions, and validation selects among them. So references and alternatives in
a schema need no special rules.
"""

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any, NoReturn

from jsonschema_rs import FancyRegexOptions, ValidationError, Validator, validator_for

from packetgate.state.base import is_storable
from packetgate.state.routing import Correction
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.spec.tool_spec import ToolSpec, canonical_json
from packetgate.tools.text.nearly_json import read_nearly_json

MAX_CORRECTIONS = 8
BACKTRACK_LIMIT = 100_000
"""Largest number of steps of a pattern on a value. If a pattern needs more steps, the value is invalid."""
PATTERN_OPTIONS = FancyRegexOptions(backtrack_limit=BACKTRACK_LIMIT)

_UNPORTABLE = re.compile(r"\[[:.=]|&&|~~|--|^/.+/[a-z]*$|\{,\d", re.DOTALL)
"""Pattern syntax that differs between languages, such as named classes, set operations and `/.../` literals."""
_DASH_BESIDE_CLASS = re.compile(r"(?<!\\)(\\[dDwWsS])-|-(?=\\[dDwWsS])")

MAX_ERRORS = 64
"""If a call has more invalid values than this, no value is converted."""
MAX_PLANS = 6
_LEFT_OUT = object()  # in place of a value: its key is left out
_LIST_MARKS = re.compile(r"\A\s*[\[{(\"'`]|\A\s*[-*\u2022] |[,;\n\[\]]")  # a text with them may be several items
CONVERSION_ROUNDS = 2
"""The second round converts values that the first round parsed from JSON text or wrapped in a list."""

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,30})(?:\.[0-9]{1,30})?")

_Path = tuple[str | int, ...]


def check_call(name: str, params: Mapping[str, Any], palette: frozenset[str], catalogue: Catalogue) -> list[Correction]:
    """Return the problems of a call; empty if the call is valid."""
    if name in palette and name in catalogue:
        return check_params(catalogue[name], params)
    canonical = catalogue.canonical(name)
    if canonical is None:
        problem, message = (
            "unknown_tool",
            f"There is no tool `{name}`. Nearest: {_quoted_list(catalogue.similar_names(name))}.",
        )
    elif canonical != name:
        problem, message = "alias", f"`{name}` is not the exact name of a tool: call `{canonical}`."
    else:
        problem, message = (
            "off_palette",
            f"`{name}` is not offered in this turn. Offered: {_quoted_list(sorted(palette))}.",
        )
    return [Correction(tool_name=name, problem=problem, message=message)]


def check_params(spec: ToolSpec, params: Mapping[str, Any]) -> list[Correction]:
    """Return the problems of the arguments according to the tool's JSON Schema."""
    known = spec.parameters
    problems: list[tuple[str, str]] = []
    for name in params:
        if name not in known and not spec.is_open:
            similar = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
            hint = f" Did you mean `{similar[0]}`?" if similar else ""
            if name in spec.default_args:
                hint = f" Its server's configuration sets `{name}` to `{spec.default_args[name]}`: leave it out."
            problems.append(("unknown_parameter", f"has no parameter `{name}`.{hint}"))
    for name in spec.required:
        if name not in params:
            about = str(known.get(name, {}).get("description", "")).strip()
            problems.append(("missing_parameter", f"needs `{name}`{f' ({about})' if about else ''}: it is missing."))
    for name, value in params.items():
        if not is_storable(value):
            reason = "it contains an integer of more than 64 bits, or a key that is not text"
            problems.append(("invalid_value", f"cannot take this value of `{name}`: {reason}."))
    try:
        errors = sorted(value_errors(spec, params), key=lambda error: list(map(str, error.instance_path)))
    except ValueError as broken:
        text = f"publishes a broken schema, so no call can be checked: {_first_line(broken)}."
        problems.append(("invalid_value", text))
    else:
        for error in errors:
            where = ".".join(map(str, error.instance_path)) or "the arguments"
            problems.append(("invalid_value", f"cannot take this value of `{where}`: {_short(error.message)}."))
    return [
        Correction(tool_name=spec.name, problem=problem, message=f"`{spec.name}` {text} It takes: {spec.signature()}.")
        for problem, text in problems[:MAX_CORRECTIONS]
    ]


def value_errors(spec: ToolSpec, params: Mapping[str, Any]) -> list[ValidationError]:
    """Return the errors of values, without missing and unknown parameters.

    Raise `ValueError` if the schema is broken.
    """
    errors = _validator(spec.schema_json).iter_errors(dict(params))
    by_name = [["required"]] if spec.is_open else [["required"], ["additionalProperties"]]
    return [error for error in errors if error.instance_path or list(error.schema_path) not in by_name]


def schema_error(schema: Mapping[str, Any]) -> str:
    """Return why a schema is broken; empty if it is valid."""
    try:
        _validator(canonical_json(schema))
    except ValueError as error:
        return _first_line(error)
    return ""


def result_error(schema: Mapping[str, Any], structured: Any) -> str:
    """Return why structured content does not fit its schema; empty if it fits.

    Raise `ValueError` if the schema is broken.
    """
    error = next(_validator(canonical_json(schema)).iter_errors(structured), None)
    return "" if error is None else _short(error.message)


@lru_cache(maxsize=512)
def _validator(schema: str) -> Validator:
    parsed = json.loads(schema)
    if not re.match(r"https?://json-schema\.org/", str(parsed.get("$schema", ""))):
        parsed.pop("$schema", None)
    return validator_for(parsed, retriever=_refuse_reference, validate_formats=False, pattern_options=PATTERN_OPTIONS)


def _refuse_reference(uri: str) -> NoReturn:
    raise ValueError(f"{uri} is outside the schema")


def _quoted_list(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"


def _first_line(error: ValueError) -> str:
    return _short(str(error).partition("\n")[0])


def _short(message: str, limit: int = 200) -> str:
    message = message.removesuffix(".")
    return message if len(message) <= limit else message[: limit - 1] + "…"


@lru_cache(maxsize=4096)
def portable_pattern(pattern: str) -> str | None:
    """Return a pattern that the validator accepts; None if it is unusable, or its meaning differs between languages."""
    if _UNPORTABLE.search(pattern):
        return None
    escaped = _DASH_BESIDE_CLASS.sub(r"\1\\-", pattern)
    return next(filter(_compiles, (pattern, escaped)), None)


def _compiles(pattern: str) -> bool:
    try:
        validator_for({"pattern": pattern}, pattern_options=PATTERN_OPTIONS)
    except ValueError:
        return False
    return True


def coerce_params(spec: ToolSpec, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments; each parameter is unchanged, or converted and valid. Valid values are never changed."""
    given = dict(params)
    try:
        errors = first = value_errors(spec, given)
        converted = given
        for _ in range(CONVERSION_ROUNDS):
            if not 0 < len(errors) <= MAX_ERRORS:
                break
            converted = _convert_invalid_values(spec, converted, errors)
            errors = value_errors(spec, converted)
        invalid = invalid_names(errors)
        repaired = {name: given[name] if name in invalid else value for name, value in converted.items()}
        changed = {name for name, value in repaired.items() if value is not given[name]}
        errors = value_errors(spec, repaired) if changed else first
    except ValueError:  # the schema is broken, or a value is nested too deeply
        return given
    at_root, at_root_first = (sum(not error.instance_path for error in some) for some in (errors, first))
    is_worse = invalid_names(errors) & changed or at_root > at_root_first
    return given if is_worse else repaired


def invalid_names(errors: Iterable[ValidationError]) -> set[str]:
    """Return the names of the invalid parameters."""
    return {str(path[0]) for path in map(_path, errors) if path}


def _convert_invalid_values(
    spec: ToolSpec, params: dict[str, Any], errors: Sequence[ValidationError]
) -> dict[str, Any]:
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
    # errors to repair together: the error itself, or all errors of an alternative of the schema
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
    if len(path) == 1 and value is _LEFT_OUT:
        del copy[path[0]]
    else:
        copy[path[0]] = _replaced(holder[path[0]], path[1:], value)
    return copy


def _candidates_at(params: Mapping[str, Any], error: ValidationError) -> list[Any]:
    value: Any = params
    for step in error.instance_path:
        value = value[step]
    if value is None and len(error.instance_path) > 1 and isinstance(error.instance_path[-1], str):
        return [_LEFT_OUT]
    scalars = [*_options(value, getattr(error.kind, "options", ())), *_scalars(value)]
    if isinstance(value, str) and _LIST_MARKS.search(value):
        return scalars + parse_container(value)  # a text that cannot be parsed is not an item either
    wrapped = [] if value is None or isinstance(value, list) else [[one] for one in (value, *scalars)]
    return scalars + wrapped


def parse_container(text: str) -> list[Any]:
    """Return a list with the object or array that a text contains as nearly JSON; otherwise an empty list."""
    if not text.lstrip().startswith(("{", "[", "```")):
        return []
    try:
        return [read_nearly_json(text)]
    except ValueError:
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
