"""The user's rules: which calls are allowed unasked, which are asked about, and which never run.

Of several rules that hold for a call the strictest decides, in whatever order they stand. A rule can only narrow by
mistake: one that allows holds for nothing it does not name, and one that asks or denies holds even for a tool that has
no parameter of the name that it gives.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from packetgate.tools.policy.patterns import ANYTHING, fits, may_fit

Pattern = Annotated[str, Field(min_length=1)]
Channel = Literal["terminal", "discord", "server", "proxy", "serve", "notebook", "unknown"]
"""Where a request came in, as the connector says; `unknown` is a program that calls the graph itself."""


class Effect(StrEnum):
    """What a rule does, strictest first."""

    DENY = "deny"
    ASK = "ask"
    ALLOW = "allow"


class Rule(BaseModel):
    """One `[[policy.rules]]` of `packetgate.toml`."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)

    effect: Effect
    tool: Pattern | None = None
    """A canonical name, in which `*` stands for any part."""
    server: Pattern | None = None
    arguments: dict[Pattern, str] = {}
    """By parameter, the pattern that its value must fit, as in `packetgate.tools.policy.patterns`."""
    channels: tuple[Channel, ...] | None = None
    """None: whichever."""

    @model_validator(mode="after")
    def _names_something(self) -> Self:
        if self.tool is None and self.server is None:
            raise ValueError(
                'a rule names what it is for: tool = "server.tool", or server = "name"; * stands for any part'
            )
        if self.channels == ():
            raise ValueError("no channel is given: leave `channels` out for all of them")
        return self

    @property
    def patterns(self) -> tuple[str, ...]:
        """The patterns of canonical names that it gives."""
        return tuple(pattern for pattern in (self.tool, self.server and f"{self.server}.*") if pattern)

    @property
    def line(self) -> str:
        """The rule as a person reads it."""
        what = self.tool or f"{self.server}.*"
        of = f" of server {self.server}" if self.tool and self.server else ""
        where = f" in {', '.join(self.channels)}" if self.channels else ""
        return f"{self.effect} {what}{of}{arguments_line(self.arguments)}{where}"

    def is_about(self, tool: str, server: str) -> bool:
        """Whether it speaks of this tool, whatever its arguments and wherever it is called from."""
        tools = self.tool is None or fnmatchcase(tool, self.tool)
        return tools and (self.server is None or fnmatchcase(server, self.server))

    def is_for(self, channel: str) -> bool:
        """Whether it speaks of what is asked in this channel."""
        return self.channels is None or channel in self.channels

    def holds_for(self, params: Mapping[str, Any], known: Iterable[str]) -> bool:
        """Whether a call of a tool that it is about is one that it means; `known` are the tool's parameters."""
        if self.effect is Effect.ALLOW:
            named = {name: wanted for name, wanted in self.arguments.items() if wanted != ANYTHING}
            return all(name in params and fits(params[name], wanted) for name, wanted in named.items())
        own = {*known, *params}
        return all(
            name not in own or (name in params and may_fit(params[name], wanted))
            for name, wanted in self.arguments.items()
        )


def ruling(rules: Iterable[Rule], params: Mapping[str, Any], known: Iterable[str], channel: str) -> Rule | None:
    """Return the rule that decides a call, None where none holds; the rules are those about its tool."""
    holding = [rule for rule in rules if rule.is_for(channel) and rule.holds_for(params, known)]
    return min(holding, key=lambda rule: list(Effect).index(rule.effect), default=None)


def denied_outright(rules: Iterable[Rule], channel: str) -> bool:
    """Whether a rule denies a tool whatever its arguments: then nobody need hear of it."""
    return any(rule.effect is Effect.DENY and not rule.arguments and rule.is_for(channel) for rule in rules)


def arguments_line(arguments: Mapping[str, str], leeway: Mapping[str, str] | None = None) -> str:
    """Return what patterns say of arguments, as a person reads it; `leeway` says what else each may be."""
    left = dict(leeway or {})
    told = [
        f"any {name}" if wanted == ANYTHING else " or ".join(filter(None, (f'{name} "{wanted}"', left.pop(name, ""))))
        for name, wanted in arguments.items()
    ]
    told += [
        f"{' and '.join(name for name, words in left.items() if words == said)} {said}"
        for said in dict.fromkeys(left.values())
    ]
    return f" with {', '.join(told)}" if told else ""
