"""Repair and check a requested call. Only unambiguous repairs are made, and no argument is dropped."""

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
    from_json,
    value_errors,
    wrong_names,
)
from packetgate.tools.spec.default_arguments import without_repeated
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.words import words_of

CLOSE = 0.8
"""Least similarity at which a word of a parameter's name counts as misspelt."""

MAX_NAMESPACES = 2

_NAMESPACES = frozenset({"api", "default", "functions", "mcp", "tools"})
"""Namespaces that models write before tool names."""
_SEPARATOR = re.compile(r"__|[.:/]")
_TOOL_KEYS = frozenset({"function", "mcp", "name", "tool"})
_SERVER_KEYS = frozenset({"id", "mcp", "name", "server"})
_BODY_KEYS = frozenset({"args", "arguments", "data", "input", "inputs", "json", "kwargs", "parameters", "params"})
_MISSES = frozenset({"off_palette", "unknown_tool"})


@dataclass(frozen=True)
class CheckedCall:
    """A call after repairs."""

    tool_name: str
    params: dict[str, Any]
    repairs: tuple[Correction, ...] = ()
    problems: tuple[Correction, ...] = ()
    """Reasons why the call cannot be made; empty if it can."""

    @property
    def misses(self) -> bool:
        """Whether its tool is not on the palette."""
        return any(one.problem in _MISSES for one in self.problems)

    def repaired(self, problem: str, message: str, about: str = "", **changes: Any) -> "CheckedCall":
        """Return the call with changes, and the repair that explains them."""
        note = Correction(tool_name=about or self.tool_name, problem=problem, message=message, is_repaired=True)
        return replace(self, repairs=(*self.repairs, note)[:MAX_CORRECTIONS], **changes)


def checked_call(
    name: str,
    params: Mapping[str, Any],
    palette: frozenset[str],
    catalogue: Catalogue,
    written: Mapping[str, str] | None = None,
) -> CheckedCall:
    """Return the repaired call, with its repairs and problems. May block.

    Args:
        written: the original text of untyped values, which is used if the parsed value is invalid.
    """
    return with_problems(repair_call(name, params, catalogue, written), palette, catalogue)


def with_problems(call: CheckedCall, palette: frozenset[str], catalogue: Catalogue) -> CheckedCall:
    """Return the call with its problems, without repairing it. May block."""
    return replace(call, problems=tuple(check_call(call.tool_name, call.params, palette, catalogue)))


def repair_call(
    name: str, params: Mapping[str, Any], catalogue: Catalogue, written: Mapping[str, str] | None = None
) -> CheckedCall:
    """Return the repaired call. Parts that cannot be repaired stay unchanged."""
    call = _with_tool(CheckedCall(name, dict(params)), catalogue)
    if call.tool_name not in catalogue:
        return call
    spec = catalogue[call.tool_name]
    call = replace(call, params=without_repeated(call.params, spec))
    if written and (wrong := _wrong(spec, call.params) & written.keys()):
        call = replace(call, params=call.params | {name: written[name] for name in wrong & call.params.keys()})
    return _with_resolved_values(_with_types(_with_names(call, spec), spec), spec)


def _with_tool(call: CheckedCall, catalogue: Catalogue) -> CheckedCall:
    name = call.tool_name
    known = meant_tool(name, catalogue)
    if known and known != name:
        call = call.repaired("alias", f"`{name}` was read as `{known}`.", name, tool_name=known)
    inner = _unwrapped(call.tool_name, call.params, catalogue)
    if inner is None:
        return call
    tool_name, params, message = inner
    return call.repaired("wrapper", message, name, tool_name=tool_name, params=params)


def _with_names(call: CheckedCall, spec: ToolSpec) -> CheckedCall:
    if spec.is_open:
        return call
    unknown = [name for name in call.params if name not in spec.parameters]
    missing = [name for name in spec.parameters if name not in call.params]
    close = {name: [one for one in missing if _is_similar(name, one)] for name in unknown}
    single = {name: near[0] for name, near in close.items() if len(near) == 1}
    meant = {name: one for name, one in single.items() if [*single.values()].count(one) == 1}
    wrong = _wrong(spec, coerce_params(spec, {one: call.params[name] for name, one in meant.items()}))
    for name, one in meant.items():
        if one not in wrong:
            params = {one if key == name else key: value for key, value in call.params.items()}
            message = f"`{spec.name}` has no parameter `{name}`: it was read as `{one}`."
            call = call.repaired("misspelt_parameter", message, params=params)
    return call


def _wrong(spec: ToolSpec, params: Mapping[str, Any]) -> set[str]:
    try:
        return wrong_names(value_errors(spec, params))
    except ValueError:  # the schema is broken
        return set(params)


def _is_similar(name: str, other: str) -> bool:
    words, others = words_of(name), words_of(other)
    if "".join(words) == "".join(others):
        return True
    return len(words) == len(others) and all(
        word == one or (min(len(word), len(one)) > 2 and difflib.SequenceMatcher(None, word, one).ratio() >= CLOSE)
        for word, one in zip(words, others, strict=True)
    )


def _with_types(call: CheckedCall, spec: ToolSpec) -> CheckedCall:
    given, params = call.params, coerce_params(spec, call.params)
    for name, value in params.items():
        if value is not given[name]:
            message = f"`{spec.name}` takes `{name}` as {_shown(value)}: {_shown(given[name])} was converted."
            call = call.repaired("coerced", message)
    return replace(call, params=params)


def _with_resolved_values(call: CheckedCall, spec: ToolSpec) -> CheckedCall:
    given, params = call.params, spec.resolve_arguments(call.params) if spec.resolve_arguments else call.params
    for name, value in params.items():
        if value != given.get(name):
            call = call.repaired("named_nearly", f"`{name}` {_shown(given.get(name))} was read as {_shown(value)}.")
    return replace(call, params=params)


def _shown(value: Any, limit: int = 60) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def meant_tool(name: str, catalogue: Catalogue) -> str | None:
    """Return the canonical name of the tool that `name` means, ignoring namespaces; None if `name` is ambiguous."""
    for _ in range(MAX_NAMESPACES):
        namespace, *rest = _SEPARATOR.split(name, maxsplit=1)
        is_namespace = set(words_of(namespace)) <= _NAMESPACES and namespace not in catalogue.servers
        if not (rest and is_namespace) or catalogue.canonical(name):
            break
        name = rest[0]
    plain = name.isascii() and name.isprintable()
    return catalogue.canonical(name) if plain or name in catalogue else None


def _unwrapped(name: str, params: Mapping[str, Any], catalogue: Catalogue) -> tuple[str, dict[str, Any], str] | None:
    # a wrapper is not a tool's name; its arguments are a tool, an optional server, and an object or JSON text
    bodies = {key: body for key, value in params.items() if (body := _body(key, value)) is not None}
    names = {key: value for key, value in params.items() if key not in bodies and isinstance(value, str)}
    if len(bodies) != 1 or len(names) + 1 != len(params):
        return None
    ((key, body),) = bodies.items()
    spec, inner = catalogue.get(name), _inner_tool(names, catalogue)
    if spec is None:
        return (inner, body, f"`{name}` is not a tool: the call of `{inner}` inside it was used.") if inner else None
    known = spec.parameters.keys()
    is_wrapper = body.keys() <= known and not params.keys() & known and bool(check_params(spec, params))
    if (names and inner != name) or not is_wrapper:
        return None
    return name, body, f"`{name}` has no parameter `{key}`: the arguments inside it were used."


def _body(key: str, value: Any) -> dict[str, Any] | None:
    if not set(words_of(key)) & _BODY_KEYS:
        return None
    read = from_json(value) if isinstance(value, str) else [value]
    return next((one for one in read if isinstance(one, dict)), None)


def _inner_tool(names: Mapping[str, str], catalogue: Catalogue) -> str | None:
    words = {key: set(words_of(key)) for key in names}
    servers = [names[key] for key, one in words.items() if "server" in one and one <= _SERVER_KEYS]
    tools = [names[key] for key, one in words.items() if one <= _TOOL_KEYS]
    if len(tools) != 1 or len(servers) + 1 != len(names):
        return None
    meant = meant_tool(tools[0], catalogue)
    if not servers or (meant and words_of(catalogue[meant].server) == words_of(servers[0])):
        return meant
    return catalogue.canonical(f"{servers[0]}.{tools[0]}")
