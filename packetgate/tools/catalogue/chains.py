"""Chains in `packetgate.toml`: several tools that are called as one step."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Self

from pydantic import Field, JsonValue, model_validator

from packetgate.state.errors import ToolCallError
from packetgate.state.printing import compact_json
from packetgate.state.routing import ToolResult
from packetgate.tools.catalogue.config_file import ConfigTable, NonEmpty

CHAINS = "chain"
"""Name of the server that chains belong to."""
MAX_CHAIN_STEPS = 8
_PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*|\d+(?:\.[\w-]+)*)\}")
"""A parameter of the chain, the output of an earlier step, or a field of it: `{path}`, `{1}`, `{1.files.0}`."""

ChainName = Annotated[str, Field(pattern=r"^[A-Za-z_][\w-]*$")]


class Step(ConfigTable):
    """One step of a chain: a tool and its argument templates."""

    tool: NonEmpty
    params: dict[NonEmpty, JsonValue] = {}
    """The step's arguments; texts may contain placeholders."""


class ToolChain(ConfigTable):
    """Tools that are called one after the other when the chain is selected."""

    description: NonEmpty
    parameters: dict[ChainName, NonEmpty] = {}
    """Descriptions of the chain's arguments, by name."""
    steps: Annotated[list[Step], Field(min_length=1, max_length=MAX_CHAIN_STEPS)]

    @model_validator(mode="after")
    def _check_steps(self) -> Self:
        for number, step in enumerate(self.steps, 1):
            if step.tool.startswith(f"{CHAINS}."):
                raise ValueError(f"step {number} is a chain: name the tools of its steps instead")
            for name in _placeholders(step.params):
                is_earlier_step = name[0].isdigit() and 1 <= int(name.partition(".")[0]) < number
                if not is_earlier_step and name not in self.parameters:
                    raise ValueError(f"step {number} uses {{{name}}}, which is neither a parameter nor an earlier step")
        return self


def is_constant(template: JsonValue) -> bool:
    """Whether a step's argument contains no placeholder."""
    return not any(_placeholders(template))


def fill_template(template: JsonValue, params: Mapping[str, JsonValue], results: Mapping[str, ToolResult]) -> JsonValue:
    """Return a step's argument with its placeholders replaced by values.

    The value of a placeholder that is the whole text keeps its type.

    Args:
        params: the arguments of the chain.
        results: the results of its earlier steps, by number.

    Raises:
        ToolCallError: a result has no such field.
    """
    match template:
        case str():
            if placeholder := _PLACEHOLDER.fullmatch(template):
                return _placeholder_value(placeholder[1], params, results)
            values = (_placeholder_value(name, params, results) for name in _PLACEHOLDER.findall(template))
            texts = iter([value if isinstance(value, str) else compact_json(value) for value in values])
            return _PLACEHOLDER.sub(lambda _: next(texts), template)
        case dict():
            return {name: fill_template(value, params, results) for name, value in template.items()}
        case list():
            return [fill_template(value, params, results) for value in template]
    return template


def _placeholders(template: Any) -> Iterator[str]:
    if isinstance(template, str):
        yield from _PLACEHOLDER.findall(template)
    elif isinstance(template, dict | list):
        for value in template.values() if isinstance(template, dict) else template:
            yield from _placeholders(value)


def _placeholder_value(name: str, params: Mapping[str, JsonValue], results: Mapping[str, ToolResult]) -> JsonValue:
    if not name[0].isdigit():
        return params[name]
    number, *path = name.split(".")
    if not path:
        return results[number].output
    result = results[number]
    try:
        value: Any = json.loads(result.output) if result.fields is None else result.fields
        for part in path:
            value = value[int(part)] if isinstance(value, list) else value[part]
    # also if the output is not JSON, or is nested too deeply
    except (LookupError, TypeError, ValueError, RecursionError):
        raise ToolCallError(f"the result of step {number} has no field {'.'.join(path)!r}") from None
    field: JsonValue = value
    return field
