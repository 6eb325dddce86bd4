"""Where a call's arguments came from."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from state.origins import Origin, OriginKind
from tools.spec.tool_spec import ToolSpec

USER = Origin(kind=OriginKind.USER)
DEFAULT = Origin(kind=OriginKind.DEFAULT)
MODEL = Origin(kind=OriginKind.NOBODY)

_ABSENT = object()


def trace_params(
    params: Mapping[str, Any], spec: ToolSpec, user_words: str, tool_outputs: Iterable[tuple[str, str]]
) -> dict[str, Origin]:
    """Return the origin of each argument.

    Args:
        params: the arguments.
        spec: the tool; its schema's own defaults and constants are trusted defaults.
        user_words: all that the user said.
        tool_outputs: (tool name, output) of what tools returned, newest first.
    """
    outputs = list(tool_outputs)
    return {name: _origin(value, spec.parameters.get(name, {}), user_words, outputs) for name, value in params.items()}


def untrusted_params(provenance: Mapping[str, Origin]) -> dict[str, Origin]:
    """Return the arguments that neither the user nor a trusted default gave."""
    return {name: origin for name, origin in provenance.items() if not origin.is_trusted}


def _origin(value: Any, schema: Mapping[str, Any], user_words: str, outputs: list[tuple[str, str]]) -> Origin:
    leaves, flags = [leaf for leaf in _leaves(value) if leaf.strip()], _has_flag(value)
    if leaves and not flags and all(_said(leaf, user_words) for leaf in leaves):
        return USER
    if any(value == schema.get(key, _ABSENT) for key in ("default", "const")) or not (leaves or flags):
        return DEFAULT
    for tool, output in outputs:
        if any(_said(leaf, output) for leaf in leaves if not _said(leaf, user_words)):
            return Origin(kind=OriginKind.TEXT, tool=tool)
    return MODEL


def _leaves(value: Any) -> Iterable[str]:
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from _leaves(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _leaves(inner)
    elif isinstance(value, str):
        yield value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield json.dumps(value)


def _has_flag(value: Any) -> bool:
    """Whether there is a true or false in `value`: nobody says it word by word."""
    if isinstance(value, Mapping):
        return any(_has_flag(inner) for inner in value.values())
    if isinstance(value, list | tuple):
        return any(_has_flag(inner) for inner in value)
    return isinstance(value, bool)


def _said(leaf: str, text: str) -> bool:
    """Whether `leaf` stands in `text` as words of its own, whatever the case and the white space."""
    wanted = re.escape(" ".join(leaf.casefold().split()))
    return re.search(rf"(?<!\w){wanted}(?!\w)", " ".join(text.casefold().split())) is not None
