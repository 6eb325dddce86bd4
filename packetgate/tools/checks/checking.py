"""Repair and validate a requested call. Only unambiguous mistakes are repaired, and no value is dropped."""

import difflib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from packetgate.state.routing import Correction
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.checks.validation import (
    MAX_CORRECTIONS,
    check_call,
    check_params,
    coerce_params,
    invalid_names,
    parse_container,
    value_errors,
)
from packetgate.tools.spec.default_arguments import without_repeated_defaults
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.backslashes import restore_backslashes
from packetgate.tools.text.words import words_of

CLOSE = 0.8
"""Least similarity at which a word of a parameter's name counts as misspelt."""

MAX_NAMESPACES = 2

_NAMESPACES = frozenset({"api", "default", "functions", "mcp", "tools"})
"""Namespaces that models write before tool names."""
_SEPARATOR = re.compile(r"__|[.:/]")
_TAIL = re.compile(r":\d{1,3}\Z|<\|.*", re.DOTALL)
"""The number of a call, or a special token, that some models write after the tool's name."""
_TOOL_KEYS = frozenset({"function", "mcp", "name", "tool"})
_SERVER_KEYS = frozenset({"id", "mcp", "name", "server"})
_BODY_KEYS = frozenset({"args", "arguments", "data", "input", "inputs", "json", "kwargs", "parameters", "params"})
_ABSENT = frozenset({"", "none", "null", "undefined"})
"""Strings that models write for a missing value."""
_MISSES = frozenset({"off_palette", "unknown_tool"})


@dataclass(frozen=True)
class CheckedCall:
    """A requested call with its repairs and problems."""

    tool_name: str
    params: dict[str, Any]
    repairs: tuple[Correction, ...] = ()
    problems: tuple[Correction, ...] = ()
    """Reasons why the call cannot be made; empty if it can."""

    @property
    def is_tool_miss(self) -> bool:
        """Whether the tool is not on the palette."""
        return any(correction.problem in _MISSES for correction in self.problems)

    def with_repair(self, problem: str, message: str, requested_name: str = "", **changes: Any) -> "CheckedCall":
        """Return the call with changes, and with a correction that explains them."""
        name = requested_name or self.tool_name
        note = Correction(tool_name=name, problem=problem, message=message, is_repaired=True)
        return replace(self, repairs=(*self.repairs, note)[:MAX_CORRECTIONS], **changes)


def repair_and_validate(
    name: str,
    params: Mapping[str, Any],
    palette: frozenset[str],
    catalogue: Catalogue,
    original_texts: Mapping[str, str] | None = None,
    *,
    words: str,
) -> CheckedCall:
    """Return the repaired call, with its repairs and remaining problems. May block.

    Args:
        words: the user's words.
        original_texts: the original texts of untyped values, by parameter. A text is used if its parsed value is
            invalid.
    """
    return validate_call(repair_call(name, params, catalogue, original_texts, words=words), palette, catalogue)


def validate_call(call: CheckedCall, palette: frozenset[str], catalogue: Catalogue) -> CheckedCall:
    """Return the call with its current problems, without repairs. May block."""
    return replace(call, problems=tuple(check_call(call.tool_name, call.params, palette, catalogue)))


def repair_call(
    name: str,
    params: Mapping[str, Any],
    catalogue: Catalogue,
    original_texts: Mapping[str, str] | None = None,
    *,
    words: str = "",
) -> CheckedCall:
    """Return the repaired call. Parts that cannot be repaired stay unchanged."""
    spec, call = catalogue.get(name), CheckedCall(name, dict(params))
    if spec is not None:
        call = replace(call, params={**spec.configured_defaults, **call.params})
    if spec is not None and not check_params(spec, call.params):
        call = _leave_out_absent(call, spec, words)
        kept = without_repeated_defaults(call.params, spec) if spec.default_args else call.params
        return resolve_values(_restore_backslashes(replace(call, params=kept), words), spec)
    call = _repair_tool_name(call, catalogue)
    if call.tool_name not in catalogue:
        return call
    spec = catalogue[call.tool_name]
    call = replace(call, params=without_repeated_defaults({**spec.configured_defaults, **call.params}, spec))
    if original_texts and (invalid := _invalid_parameters(spec, call.params) & original_texts.keys()):
        texts = {name: original_texts[name] for name in invalid & call.params.keys()}
        call = replace(call, params=call.params | texts)
    call = _leave_out_absent(_repair_parameter_names(call, spec), spec, words)
    return resolve_values(_restore_backslashes(_repair_types(call, spec), words), spec)


def _restore_backslashes(call: CheckedCall, words: str) -> CheckedCall:
    for name, value in restore_backslashes(call.params, words).items():
        if value != call.params[name]:
            message = (
                f"`{name}` {_shorten_json(call.params[name])} was read as {_shorten_json(value)}, as you wrote it."
            )
            call = call.with_repair("coerced", message, params={**call.params, name: value})
    return call


def _repair_tool_name(call: CheckedCall, catalogue: Catalogue) -> CheckedCall:
    name = call.tool_name
    known = resolve_tool_name(name, catalogue)
    if known and known != name:
        call = call.with_repair("alias", f"`{name}` was read as `{known}`.", name, tool_name=known)
    inner = _unwrap_call(call.tool_name, call.params, catalogue)
    if inner is None:
        return call
    tool_name, params, message = inner
    return call.with_repair("wrapper", message, name, tool_name=tool_name, params=params)


def _repair_parameter_names(call: CheckedCall, spec: ToolSpec) -> CheckedCall:
    if spec.is_open:
        return call
    unknown = [name for name in call.params if name not in spec.parameters]
    missing = [name for name in spec.parameters if name not in call.params]
    similar = {name: [parameter for parameter in missing if _is_similar(name, parameter)] for name in unknown}
    single = {name: parameters[0] for name, parameters in similar.items() if len(parameters) == 1}
    corrected = {name: parameter for name, parameter in single.items() if [*single.values()].count(parameter) == 1}
    params = {parameter: call.params[name] for name, parameter in corrected.items()}
    invalid = _invalid_parameters(spec, coerce_params(spec, params))
    for name, parameter in corrected.items():
        if parameter not in invalid:
            params = {parameter if key == name else key: value for key, value in call.params.items()}
            message = f"`{spec.name}` has no parameter `{name}`: it was read as `{parameter}`."
            call = call.with_repair("misspelt_parameter", message, params=params)
    return call


def _invalid_parameters(spec: ToolSpec, params: Mapping[str, Any]) -> set[str]:
    try:
        return invalid_names(value_errors(spec, params))
    except ValueError:  # the schema is broken
        return set(params)


def _is_similar(name: str, other: str) -> bool:
    words, others = words_of(name), words_of(other)
    if "".join(words) == "".join(others):
        return True
    return len(words) == len(others) and all(
        word == other_word
        or (min(len(word), len(other_word)) > 2 and difflib.SequenceMatcher(None, word, other_word).ratio() >= CLOSE)
        for word, other_word in zip(words, others, strict=True)
    )


def _leave_out_absent(call: CheckedCall, spec: ToolSpec, words: str) -> CheckedCall:
    """Leave out arguments that only state a missing value. A required argument is then missing.

    Such arguments are invalid or unknown, or optional strings such as "None" that the user did not write.
    """
    absent = {name: value for name, value in call.params.items() if _is_absent(value)}
    if not absent:
        return call
    unknown = set() if spec.is_open else absent.keys() - spec.parameters.keys()
    texts = {
        name
        for name, value in absent.items()
        if isinstance(value, str) and name not in spec.required and spec.parameters.get(name, {}).get("enum") is None
        if (value.strip() or "format" in spec.parameters.get(name, {})) and not (value and value in words)
    }
    for name in sorted(absent.keys() & (_invalid_parameters(spec, call.params) | unknown | texts)):
        params = {key: kept for key, kept in call.params.items() if key != name}
        message = f"`{name}` of `{spec.name}` was left out: {_shorten_json(absent[name])} stands for no value."
        call = call.with_repair("absent", message, params=params)
    return call


def _is_absent(value: Any) -> bool:
    return value in (None, {}, []) or (isinstance(value, str) and value.strip().casefold() in _ABSENT)


def _repair_types(call: CheckedCall, spec: ToolSpec) -> CheckedCall:
    original, params = call.params, coerce_params(spec, call.params)
    for name, value in params.items():
        if value is not original[name]:
            before, after = _shorten_json(original[name]), _shorten_json(value)
            message = f"`{name}` of `{spec.name}` was converted from {before} to {after}."
            call = call.with_repair("coerced", message)
    return replace(call, params=params)


def resolve_values(call: CheckedCall, spec: ToolSpec) -> CheckedCall:
    """Return the call with its values as the tool resolves them, such as a file's name to its path. May block."""
    original, params = call.params, spec.resolved(call.params)
    for name, value in params.items():
        if value != original.get(name):
            message = f"`{name}` {_shorten_json(original.get(name))} was read as {_shorten_json(value)}."
            call = call.with_repair("named_nearly", message)
    return replace(call, params=params)


def _shorten_json(value: Any, limit: int = 60) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def resolve_tool_name(name: str, catalogue: Catalogue) -> str | None:
    """Return the canonical name of the tool that `name` means, ignoring namespaces; None if unknown or ambiguous."""
    for _ in range(MAX_NAMESPACES):
        namespace, *rest = _SEPARATOR.split(name, maxsplit=1)
        is_namespace = set(words_of(namespace)) <= _NAMESPACES and namespace not in catalogue.servers
        if not (rest and is_namespace) or catalogue.canonical(name):
            break
        name = rest[0]
    if not catalogue.canonical(name):
        name = _TAIL.sub("", name)
    plain = name.isascii() and name.isprintable()
    return catalogue.canonical(name) if plain or name in catalogue else None


def _unwrap_call(name: str, params: Mapping[str, Any], catalogue: Catalogue) -> tuple[str, dict[str, Any], str] | None:
    # a wrapper is a call whose arguments are a tool's name, optionally a server, and the arguments (object or JSON)
    bodies = {key: body for key, value in params.items() if (body := _wrapped_arguments(key, value)) is not None}
    names = {key: value for key, value in params.items() if key not in bodies and isinstance(value, str)}
    if len(bodies) != 1 or len(names) + 1 != len(params):
        return None
    ((key, body),) = bodies.items()
    spec, inner = catalogue.get(name), _inner_tool(names, catalogue)
    if spec is None:
        return (
            (inner, body, f"`{name}` is not a tool: the call of `{inner}` inside its arguments was used.")
            if inner
            else None
        )
    known = spec.parameters.keys()
    is_wrapper = body.keys() <= known and not params.keys() & known and bool(check_params(spec, params))
    if (names and inner != name) or not is_wrapper:
        return None
    return name, body, f"`{name}` has no parameter `{key}`: the content of `{key}` was used as the arguments."


def _wrapped_arguments(key: str, value: Any) -> dict[str, Any] | None:
    if not set(words_of(key)) & _BODY_KEYS:
        return None
    containers = parse_container(value) if isinstance(value, str) else [value]
    return next((container for container in containers if isinstance(container, dict)), None)


def _inner_tool(names: Mapping[str, str], catalogue: Catalogue) -> str | None:
    words = {key: set(words_of(key)) for key in names}
    servers = [names[key] for key, key_words in words.items() if "server" in key_words and key_words <= _SERVER_KEYS]
    tools = [names[key] for key, key_words in words.items() if key_words <= _TOOL_KEYS]
    if len(tools) != 1 or len(servers) + 1 != len(names):
        return None
    tool_name = resolve_tool_name(tools[0], catalogue)
    if not servers or (tool_name and words_of(catalogue[tool_name].server) == words_of(servers[0])):
        return tool_name
    return catalogue.canonical(f"{servers[0]}.{tools[0]}")
