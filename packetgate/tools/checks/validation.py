"""Validate a requested call, and explain its problems to the model."""

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NoReturn

from jsonschema_rs import FancyRegexOptions, ValidationError, Validator, validator_for

from packetgate.state.base import is_storable
from packetgate.state.routing import Correction
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.spec.tool_spec import ToolSpec

MAX_CORRECTIONS = 8
BACKTRACK_LIMIT = 100_000
"""Most steps of a pattern on one value. Beyond this limit (a hostile pattern), the value is invalid."""
PATTERN_OPTIONS = FancyRegexOptions(backtrack_limit=BACKTRACK_LIMIT)

_READ_DIFFERENTLY = re.compile(r"\[[:.=]|&&|~~|--|^/.+/[a-z]*$|\{,\d", re.DOTALL)
"""Pattern syntax that differs between languages, such as named classes, set operations and `/.../` literals."""
_DASH_BESIDE_CLASS = re.compile(r"(?<!\\)(\\[dDwWsS])-|-(?=\\[dDwWsS])")


def check_call(name: str, params: Mapping[str, Any], palette: frozenset[str], catalogue: Catalogue) -> list[Correction]:
    """Return the problems of a call; empty if the call is valid."""
    if name in palette and name in catalogue:
        return check_params(catalogue[name], params)
    canonical = catalogue.canonical(name)
    if canonical is None:
        problem, message = "unknown_tool", f"There is no tool `{name}`. Nearest: {_listed(catalogue.nearest(name))}."
    elif canonical != name:
        problem, message = "alias", f"`{name}` is not a tool's name. The tool is called `{canonical}`."
    else:
        problem, message = "off_palette", f"`{name}` is not offered this turn. Offered: {_listed(sorted(palette))}."
    return [Correction(tool_name=name, problem=problem, message=message)]


def check_params(spec: ToolSpec, params: Mapping[str, Any]) -> list[Correction]:
    """Return the problems of the arguments, by the tool's JSON Schema."""
    known = spec.parameters
    problems: list[tuple[str, str]] = []
    for name in params:
        if name not in known and not spec.is_open:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
            hint = f" Did you mean `{near[0]}`?" if near else ""
            if name in spec.default_args:
                hint = f" Its server's configuration sets `{name}` to `{spec.default_args[name]}`: leave it out."
            problems.append(("unknown_parameter", f"has no parameter `{name}`.{hint}"))
    for name in spec.required:
        if name not in params:
            about = str(known.get(name, {}).get("description", "")).strip()
            problems.append(("missing_parameter", f"needs `{name}`{f' ({about})' if about else ''}: it is missing."))
    for name, value in params.items():
        if not is_storable(value):
            why = "an integer in it exceeds 64 bits, or a key in it is not text"
            problems.append(("invalid_value", f"cannot take `{name}` as given: {why}."))
    try:
        errors = sorted(value_errors(spec, params), key=lambda error: list(map(str, error.instance_path)))
    except ValueError as broken:
        why = f"publishes a broken schema, so no call can be checked: {_first_line(broken)}."
        problems.append(("invalid_value", why))
    else:
        for error in errors:
            where = ".".join(map(str, error.instance_path)) or "the arguments"
            problems.append(("invalid_value", f"cannot take `{where}` as given: {_short(error.message)}."))
    return [
        Correction(tool_name=spec.name, problem=problem, message=f"`{spec.name}` {text} It takes: {spec.signature()}.")
        for problem, text in problems[:MAX_CORRECTIONS]
    ]


def value_errors(spec: ToolSpec, params: Mapping[str, Any]) -> list[ValidationError]:
    """Return the errors of values, without missing and unknown parameters.

    Raise `ValueError` if the schema is broken.
    """
    errors = _validator(canonical_json(spec.input_schema)).iter_errors(dict(params))
    by_name = [["required"]] if spec.is_open else [["required"], ["additionalProperties"]]
    return [error for error in errors if error.instance_path or list(error.schema_path) not in by_name]


def schema_error(schema: Mapping[str, Any]) -> str:
    """Return why a schema is broken; empty if it is not."""
    try:
        _validator(canonical_json(schema))
    except ValueError as error:
        return _first_line(error)
    return ""


def result_error(schema: Mapping[str, Any], structured: Any) -> str:
    """Return why structured content does not fit its schema; empty if it does.

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


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"


def _first_line(error: ValueError) -> str:
    return _short(str(error).partition("\n")[0])


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
