"""Chains in `packetgate.toml`: several tools that are called as one step."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from packetgate.state.errors import ToolCallError
from packetgate.state.printing import compact_json
from packetgate.state.routing import ToolResult

CHAINS = "chain"
"""The server that chains belong to."""
MAX_STEPS = 8
_PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*|\d+(?:\.[\w-]+)*)\}")
"""A parameter of the chain; or the output of an earlier step, or a field of it: `{path}`, `{1}`, `{1.files.0}`."""

Text = Annotated[str, Field(min_length=1)]
Named = Annotated[str, Field(pattern=r"^[A-Za-z_][\w-]*$")]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, str_strip_whitespace=True)


class Step(_Strict):
    """One call of a chain."""

    tool: Text
    """Its canonical name."""
    params: dict[Text, JsonValue] = {}
    """Its arguments: texts in them may hold placeholders."""


class Chain(_Strict):
    """Tools that are called one after the other, once their chain is chosen."""

    description: Text
    """What it does, for whoever chooses tools."""
    parameters: dict[Named, Text] = {}
    """By name, what each argument of the chain is."""
    steps: Annotated[list[Step], Field(min_length=1, max_length=MAX_STEPS)]

    @model_validator(mode="after")
    def _knows_its_names(self) -> Self:
        for number, step in enumerate(self.steps, 1):
            if step.tool.startswith(f"{CHAINS}."):
                raise ValueError(f"step {number} is a chain: name the tools of its steps instead")
            for name in _names_in(step.params):
                earlier = name[0].isdigit() and 1 <= int(name.partition(".")[0]) < number
                if not earlier and name not in self.parameters:
                    raise ValueError(
                        f"step {number} has {{{name}}}, which is neither one of `parameters` nor an earlier step"
                    )
        return self


def is_constant(template: JsonValue) -> bool:
    """Whether an argument of a step has no placeholder."""
    return not any(_names_in(template))


def filled(template: JsonValue, params: Mapping[str, JsonValue], results: Mapping[str, ToolResult]) -> JsonValue:
    """Fill in the placeholders of a step's argument. A placeholder that is the whole text keeps its value's type.

    Args:
        params: the arguments of the chain.
        results: the results of its earlier steps, by number.

    Raises:
        ToolCallError: a result has no such field.
    """
    match template:
        case str():
            if whole := _PLACEHOLDER.fullmatch(template):
                return _value(whole[1], params, results)
            return _PLACEHOLDER.sub(lambda found: _text(_value(found[1], params, results)), template)
        case dict():
            return {name: filled(one, params, results) for name, one in template.items()}
        case list():
            return [filled(one, params, results) for one in template]
    return template


def _names_in(template: Any) -> Iterator[str]:
    match template:
        case str():
            yield from _PLACEHOLDER.findall(template)
        case dict():
            for one in template.values():
                yield from _names_in(one)
        case list():
            for one in template:
                yield from _names_in(one)


def _value(name: str, params: Mapping[str, JsonValue], results: Mapping[str, ToolResult]) -> JsonValue:
    if not name[0].isdigit():
        return params[name]
    number, *path = name.split(".")
    content = _content(results[number])
    found: Any = content if path else results[number].output
    for part in path:
        if isinstance(found, dict) and part in found:
            found = found[part]
        elif isinstance(found, list) and part.isdigit() and int(part) < len(found):
            found = found[int(part)]
        else:
            there = ", ".join(content) if isinstance(content, dict) else f"none; all of its text is {{{number}}}"
            raise ToolCallError(f"the result of step {number} has no field {'.'.join(path)!r}; its fields are {there}")
    value: JsonValue = found
    return value


def _content(result: ToolResult) -> Any:
    """Return the fields of a result: its structured content, or its text where that is JSON."""
    if result.fields is not None:
        return result.fields
    try:
        return json.loads(result.output)
    except (ValueError, RecursionError):  # not JSON, or thousands of brackets
        return None


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else compact_json(value)
