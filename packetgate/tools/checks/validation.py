"""Validate a requested call, and explain its problems to the model."""

import difflib
import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NoReturn

from jsonschema_rs import FancyRegexOptions, ValidationError, Validator, validator_for

from packetgate.state.base import is_storable
from packetgate.state.routing import Correction
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.spec.tool_spec import ToolSpec

MAX_CORRECTIONS = 8
BACKTRACK_LIMIT = 100_000
"""Steps of a pattern on one value; a hostile pattern stops there, and the value is invalid."""
PATTERN_OPTIONS = FancyRegexOptions(backtrack_limit=BACKTRACK_LIMIT)

_READ_DIFFERENTLY = re.compile(r"\[[:.=]|&&|~~|--|^/.+/[a-z]*$|\{,\d", re.DOTALL)
"""Named classes, set operations, JavaScript literals with slashes, counts without a minimum."""
_DASH_BESIDE_CLASS = re.compile(r"(?<!\\)(\\[dDwWsS])-|-(?=\\[dDwWsS])")


def check_call(name: str, params: Mapping[str, Any], palette: frozenset[str], catalogue: Catalogue) -> list[Correction]:
    """Return the problems of a call; empty if it can be made."""
    if name in palette and name in catalogue:
        return check_params(catalogue[name], params)
    return [_wrong_name(name, palette, catalogue)]


def check_params(spec: ToolSpec, params: Mapping[str, Any]) -> list[Correction]:
    """Return the problems of the arguments, by the tool's JSON Schema."""
    problems: list[Correction] = []
    known = spec.parameters
    for unknown in [name for name in params if name not in known and not spec.is_open]:
        near = difflib.get_close_matches(unknown, known, n=1, cutoff=0.5)
        hint = f" Did you mean `{near[0]}`?" if near else ""
        if unknown in spec.standing:
            hint = f" Its server's configuration sets `{unknown}` to `{spec.standing[unknown]}`: leave it out."
        problems.append(_correction(spec, "unknown_parameter", f"has no parameter `{unknown}`.{hint}"))
    for missing in [name for name in spec.required if name not in params]:
        kind = known.get(missing, {})
        about = str(kind.get("description", "")).strip()
        problems.append(
            _correction(spec, "missing_parameter", f"needs `{missing}`{f' ({about})' if about else ''}: it is missing.")
        )
    problems += [
        _correction(
            spec,
            "invalid_value",
            f"cannot take `{name}` as given: a whole number in it is beyond 64 bits, or a name in it is no text.",
        )
        for name, value in params.items()
        if not is_storable(value)
    ]
    problems += _invalid_values(spec, params)
    return problems[:MAX_CORRECTIONS]


def value_flaws(spec: ToolSpec, params: Mapping[str, Any]) -> list[ValidationError]:
    """Return the invalid values. Missing and unknown parameters are not included.

    Raises:
        ValueError: the schema is broken.
    """
    flaws = _validator(canonical_json(spec.input_schema)).iter_errors(dict(params))
    return [flaw for flaw in flaws if not _is_told_by_name(spec, flaw)]


def schema_flaw(schema: Mapping[str, Any]) -> str:
    """Return why a schema is broken; empty if it is not."""
    try:
        _validator(canonical_json(schema))
    except ValueError as error:
        return _short(str(error).partition("\n")[0])
    return ""


def result_flaw(schema: Mapping[str, Any], structured: Any) -> str:
    """Return why structured content does not fit its schema; empty if it does.

    Raises:
        ValueError: the schema is broken.
    """
    flaw = next(_validator(canonical_json(schema)).iter_errors(structured), None)
    return "" if flaw is None else _short(flaw.message)


def _is_told_by_name(spec: ToolSpec, flaw: ValidationError) -> bool:
    match list(flaw.schema_path), list(flaw.instance_path):
        case ["required"], []:
            return True
        case ["additionalProperties"], []:
            return not spec.is_open
    return False


def _invalid_values(spec: ToolSpec, params: Mapping[str, Any]) -> list[Correction]:
    try:
        flaws = value_flaws(spec, params)
    except ValueError as error:
        why = _short(str(error).partition("\n")[0])
        return [_correction(spec, "invalid_value", f"publishes a broken schema, so no call can be checked: {why}.")]
    return [
        _correction(spec, "invalid_value", f"cannot take `{_where(flaw)}` as given: {_short(flaw.message)}.")
        for flaw in sorted(flaws, key=lambda flaw: list(map(str, flaw.instance_path)))
    ]


@lru_cache(maxsize=512)
def _validator(schema: str) -> Validator:
    parsed = json.loads(schema)
    if not re.match(r"https?://json-schema\.org/", str(parsed.get("$schema", ""))):
        parsed.pop("$schema", None)
    return validator_for(
        parsed,
        retriever=_refused,
        validate_formats=False,
        pattern_options=PATTERN_OPTIONS,
    )


def _refused(uri: str) -> NoReturn:
    raise ValueError(f"{uri} leads out of the schema")


def _where(flaw: ValidationError) -> str:
    return ".".join(map(str, flaw.instance_path)) or "the arguments"


def _wrong_name(name: str, palette: frozenset[str], catalogue: Catalogue) -> Correction:
    canonical = catalogue.canonical(name)
    if canonical is None:
        problem, message = "unknown_tool", f"There is no tool `{name}`. Nearest: {_listed(catalogue.nearest(name))}."
    elif canonical != name:
        problem, message = "alias", f"`{name}` is not a tool's name. The tool is called `{canonical}`."
    else:
        problem, message = "off_palette", f"`{name}` is not offered this turn. Offered: {_listed(sorted(palette))}."
    return Correction(tool_name=name, problem=problem, message=message)


def _correction(spec: ToolSpec, problem: str, text: str) -> Correction:
    return Correction(
        tool_name=spec.name, problem=problem, message=f"`{spec.name}` {text} It takes: {spec.signature()}."
    )


def _listed(names: list[str] | tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"


def _short(message: str, limit: int = 200) -> str:
    message = message.removesuffix(".")
    return message if len(message) <= limit else message[: limit - 1] + "…"


def canonical_json(params: Mapping[str, Any]) -> str:
    """Return the canonical JSON of arguments: equal exactly if the arguments are equal."""
    return json.dumps(params, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


@lru_cache(maxsize=4096)
def usable_pattern(pattern: str) -> str | None:
    """Return a pattern that the validator accepts; None if it cannot be used, or differs between languages."""
    if _READ_DIFFERENTLY.search(pattern):
        return None
    escaped = _DASH_BESIDE_CLASS.sub(r"\1\\-", pattern)
    return next(filter(_compiles, (pattern, escaped)), None)


def _compiles(pattern: str) -> bool:
    try:
        validator_for({"pattern": pattern}, pattern_options=PATTERN_OPTIONS)
    except ValueError:
        return False
    return True
