"""The cases that a model is evaluated on."""

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from packetgate.state.base import Section
from packetgate.state.routing import Risk
from packetgate.tools.spec.tool_spec import ToolSpec

FILE = Path(__file__).with_name("cases.toml")
_OUTER_PUNCTUATION = " \t\n.!?,;:'\"`"


class RightCall(Section):
    """A right call of a case."""

    tool: str
    args: dict[str, list[JsonValue]] = {}
    """Accepted values of each required argument. An empty list accepts any value."""
    optional_args: dict[str, list[JsonValue]] = {}
    """Accepted values of each optional argument. An empty list accepts any value."""

    def matches(self, tool: str, params: Mapping[str, JsonValue]) -> bool:
        """Whether a call is this right call."""
        known = self.args | self.optional_args
        if tool != self.tool or not self.args.keys() <= params.keys() <= known.keys():
            return False
        return all(
            not known[name] or any(_is_same(value, accepted) for accepted in known[name])
            for name, value in params.items()
        )


class EarlierCall(Section):
    """A call that was made earlier in the turn."""

    tool: str
    params: dict[str, JsonValue]
    output: str


class Case(Section):
    """A request, the offered tools, and the right calls; `cases.toml` describes the fields."""

    name: str
    kind: str
    request: str
    tools: tuple[str, ...]
    calls: tuple[RightCall, ...] = ()
    needs_question: bool = False
    earlier_call: EarlierCall | None = None

    def mark_calls(self, calls: Sequence[tuple[str, Mapping[str, JsonValue]]]) -> list[bool]:
        """Return, for each call (tool, arguments), whether it is right. A repeated call is wrong."""
        expected, marks = list(self.calls), []
        for tool, params in calls:
            match = next((call for call in expected if call.matches(tool, params)), None)
            marks.append(match is not None)
            expected = [call for call in expected if call is not match]
        return marks


class Cases(Section):
    """The content of `cases.toml`."""

    kinds: dict[str, str]
    """Titles of the kinds."""
    tools: dict[str, dict[str, Any]]
    cases: tuple[Case, ...]

    def offered_tools(self, case: Case) -> list[ToolSpec]:
        """Return the tools that a case offers."""
        servers = {name: name.partition(".")[0] for name in self.tools}
        return [_spec(name, **self.tools[name]) for name, server in servers.items() if {name, server} & {*case.tools}]


@cache
def load_cases() -> Cases:
    """Return the shipped cases. The name of each case is its kind and number."""
    read = tomllib.loads(FILE.read_text(encoding="utf-8"))
    named = [{"name": f"{one['kind']}-{at}", **one} for at, one in enumerate(read["cases"], 1)]
    return Cases.model_validate({**read, "cases": named}, extra="forbid")


def _spec(name: str, *, risk: str, about: str, needs: list[str], takes: dict[str, Any]) -> ToolSpec:
    server, _, own_name = name.partition(".")
    schema = {"type": "object", "properties": takes, "required": needs, "additionalProperties": False}
    return ToolSpec(name, server, own_name, about, about, schema, Risk(risk), open_world=False)


def _is_same(value: JsonValue, right: JsonValue) -> bool:
    """Whether a value is right. In a text other than a path, letter case and outer punctuation are ignored."""
    if isinstance(value, str) and isinstance(right, str) and (" " in right or {".", "/"}.isdisjoint(right)):
        return (
            " ".join(value.split()).strip(_OUTER_PUNCTUATION).casefold() == right.strip(_OUTER_PUNCTUATION).casefold()
        )
    return value == right and isinstance(value, bool) == isinstance(right, bool)
