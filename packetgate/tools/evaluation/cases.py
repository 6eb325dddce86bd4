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
_MARKS = " \t\n.!?,;:'\"`"


class RightCall(Section):
    """A correct call for a case."""

    tool: str
    args: dict[str, list[JsonValue]] = {}
    """Accepted values of each required argument; any value if the list is empty."""
    may: dict[str, list[JsonValue]] = {}
    """Accepted values of each optional argument."""

    def is_made_by(self, tool: str, params: Mapping[str, JsonValue]) -> bool:
        """Whether a call matches this correct call."""
        known = self.args | self.may
        if tool != self.tool or not self.args.keys() <= params.keys() <= known.keys():
            return False
        return all(
            not known[name] or any(_is_same(value, one) for one in known[name]) for name, value in params.items()
        )


class MadeCall(Section):
    """A call that was made earlier in the turn."""

    tool: str
    params: dict[str, JsonValue]
    output: str


class Case(Section):
    """A request, the offered tools, and the right calls; `cases.toml` describes the fields."""

    name: str
    kind: str
    says: str
    tools: tuple[str, ...]
    calls: tuple[RightCall, ...] = ()
    asks: bool = False
    after: MadeCall | None = None

    def judged(self, calls: Sequence[tuple[str, Mapping[str, JsonValue]]]) -> list[bool]:
        """Return for each call (tool, arguments) whether it is right; a repetition is wrong."""
        left, found = list(self.calls), []
        for tool, params in calls:
            fitting = next((one for one in left if one.is_made_by(tool, params)), None)
            found.append(fitting is not None)
            left = [one for one in left if one is not fitting]
        return found


class Cases(Section):
    """The content of `cases.toml`."""

    kinds: dict[str, str]
    """Titles of the kinds."""
    tools: dict[str, dict[str, Any]]
    cases: tuple[Case, ...]

    def offered(self, case: Case) -> list[ToolSpec]:
        """Return the tools that a case offers."""
        servers = {name: name.partition(".")[0] for name in self.tools}
        return [_spec(name, **self.tools[name]) for name, server in servers.items() if {name, server} & {*case.tools}]


@cache
def load_cases() -> Cases:
    """Return the shipped cases, each named by kind and number."""
    read = tomllib.loads(FILE.read_text(encoding="utf-8"))
    named = [{"name": f"{one['kind']}-{at}", **one} for at, one in enumerate(read["cases"], 1)]
    return Cases.model_validate({**read, "cases": named})


def _spec(name: str, *, risk: str, about: str, needs: list[str], takes: dict[str, Any]) -> ToolSpec:
    server, _, own_name = name.partition(".")
    schema = {"type": "object", "properties": takes, "required": needs, "additionalProperties": False}
    return ToolSpec(name, server, own_name, about, about, schema, Risk(risk), open_world=False)


def _is_same(value: JsonValue, right: JsonValue) -> bool:
    """Whether a value is right; case and outer punctuation of a text that is no path do not count."""
    if isinstance(value, str) and isinstance(right, str) and (" " in right or {".", "/"}.isdisjoint(right)):
        return " ".join(value.split()).strip(_MARKS).casefold() == right.strip(_MARKS).casefold()
    return value == right and isinstance(value, bool) == isinstance(right, bool)
