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
    """A call that is right."""

    tool: str
    args: dict[str, list[JsonValue]] = {}
    """Of each argument that must be there, the values that will do; any where none is listed."""
    may: dict[str, list[JsonValue]] = {}
    """The same of arguments that can be left out."""

    def is_made_by(self, tool: str, params: Mapping[str, JsonValue]) -> bool:
        """Whether a call is this one."""
        known = self.args | self.may
        if tool != self.tool or not self.args.keys() <= params.keys() <= known.keys():
            return False
        return all(not known[name] or any(_same(value, one) for one in known[name]) for name, value in params.items())


class MadeCall(Section):
    """A call that was made earlier in the turn."""

    tool: str
    params: dict[str, JsonValue]
    output: str


class Case(Section):
    """A request, the tools that are offered, and what is right; the file says what each field means."""

    name: str
    kind: str
    says: str
    tools: tuple[str, ...]
    calls: tuple[RightCall, ...] = ()
    asks: bool = False
    after: MadeCall | None = None

    def judged(self, calls: Sequence[tuple[str, Mapping[str, JsonValue]]]) -> list[bool]:
        """Return of each call, by its tool and arguments, whether it is right; the same is so only once."""
        left, found = list(self.calls), []
        for tool, params in calls:
            fitting = next((one for one in left if one.is_made_by(tool, params)), None)
            found.append(fitting is not None)
            left = [one for one in left if one is not fitting]
        return found


class Cases(Section):
    """What the file holds."""

    kinds: dict[str, str]
    """What each kind is called in a report."""
    tools: dict[str, dict[str, Any]]
    cases: tuple[Case, ...]

    def offered(self, case: Case) -> list[ToolSpec]:
        """Return the tools that a case offers."""
        servers = {name: name.partition(".")[0] for name in self.tools}
        return [_spec(name, **self.tools[name]) for name, server in servers.items() if {name, server} & {*case.tools}]


@cache
def load_cases() -> Cases:
    """Return the cases that are shipped, each named by its kind and place."""
    read = tomllib.loads(FILE.read_text(encoding="utf-8"))
    named = [{"name": f"{one['kind']}-{at}", **one} for at, one in enumerate(read["cases"], 1)]
    return Cases.model_validate({**read, "cases": named})


def _spec(name: str, *, risk: str, about: str, needs: list[str], takes: dict[str, Any]) -> ToolSpec:
    server, _, own_name = name.partition(".")
    schema = {"type": "object", "properties": takes, "required": needs, "additionalProperties": False}
    return ToolSpec(name, server, own_name, about, about, schema, Risk(risk), open_world=False)


def _same(given: JsonValue, right: JsonValue) -> bool:
    """Whether a value is the right one. In a text that is no path, case and the marks around it do not count."""
    if isinstance(given, str) and isinstance(right, str) and (" " in right or {".", "/"}.isdisjoint(right)):
        return " ".join(given.split()).strip(_MARKS).casefold() == right.strip(_MARKS).casefold()
    return given == right and isinstance(given, bool) == isinstance(right, bool)
