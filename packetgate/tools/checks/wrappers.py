"""Find the tool that a call means, without namespaces and wrappers."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.checks.coercion import from_json
from packetgate.tools.checks.validation import check_params
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.words import words_of

MAX_NAMESPACES = 2

_NAMESPACES = frozenset({"api", "default", "functions", "mcp", "tools"})
"""Namespaces that models write before tool names."""
_SEPARATOR = re.compile(r"__|[.:/]")
_TOOL_KEYS = frozenset({"function", "mcp", "name", "tool"})
_SERVER_KEYS = frozenset({"id", "mcp", "name", "server"})
_BODY_KEYS = frozenset({"args", "arguments", "data", "input", "inputs", "json", "kwargs", "parameters", "params"})


@dataclass(frozen=True)
class Unwrapped:
    """A call that was taken out of another."""

    tool_name: str
    params: dict[str, Any]
    note: str
    """A sentence about the wrapper."""


def meant_tool(name: str, catalogue: Catalogue) -> str | None:
    """Return the canonical name of the tool that is meant, ignoring namespaces; None if it is unclear."""
    for _ in range(MAX_NAMESPACES):
        namespace, *rest = _SEPARATOR.split(name, maxsplit=1)
        is_namespace = set(words_of(namespace)) <= _NAMESPACES and namespace not in catalogue.servers
        if not (rest and is_namespace) or catalogue.canonical(name):
            break
        name = rest[0]
    plain = name.isascii() and name.isprintable()
    return catalogue.canonical(name) if plain or name in catalogue else None


def unwrapped(name: str, params: Mapping[str, Any], catalogue: Catalogue) -> Unwrapped | None:
    """Return the call inside a wrapper such as `call_mcp_tool`, or with its arguments taken out of `arguments`.

    A wrapper has the name of no tool, and its parameters are only a tool, perhaps a server, and an object or JSON text.
    """
    bodies = {key: body for key, value in params.items() if (body := _body(key, value)) is not None}
    names = {key: value for key, value in params.items() if key not in bodies and isinstance(value, str)}
    if len(bodies) != 1 or len(names) + 1 != len(params):
        return None
    ((key, body),) = bodies.items()
    spec, inner = catalogue.get(name), _inner_tool(names, catalogue)
    if spec is None:
        return (
            Unwrapped(inner, body, f"`{name}` is no tool: the call of `{inner}` was taken out of it.")
            if inner
            else None
        )
    if (names and inner != name) or not _wraps(spec, params, body):
        return None
    return Unwrapped(name, body, f"`{name}` has no parameter `{key}`: the arguments were taken out of it.")


def _wraps(spec: ToolSpec, params: Mapping[str, Any], body: Mapping[str, Any]) -> bool:
    around, known = params.keys(), spec.parameters.keys()
    return body.keys() <= known and not around & known and bool(check_params(spec, params))


def _body(key: str, value: Any) -> dict[str, Any] | None:
    if not set(words_of(key)) & _BODY_KEYS:
        return None
    read = from_json(value) if isinstance(value, str) else [value]
    return next((one for one in read if isinstance(one, dict)), None)


def _inner_tool(names: Mapping[str, str], catalogue: Catalogue) -> str | None:
    servers = [
        value for key, value in names.items() if "server" in words_of(key) and set(words_of(key)) <= _SERVER_KEYS
    ]
    tools = [value for key, value in names.items() if set(words_of(key)) <= _TOOL_KEYS]
    if len(tools) != 1 or len(servers) + 1 != len(names):
        return None
    meant = meant_tool(tools[0], catalogue)
    if not servers or (meant and words_of(catalogue[meant].server) == words_of(servers[0])):
        return meant
    return catalogue.canonical(f"{servers[0]}.{tools[0]}")
