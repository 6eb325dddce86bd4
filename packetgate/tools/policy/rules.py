"""The policy rules of `packetgate.toml`: allow, ask about or deny calls. The strictest matching rule decides.

Mistakes can only narrow what is allowed: an allow rule matches only what it names, and an ask or deny rule also
matches tools without a parameter that it names.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from packetgate.tools.policy.patterns import ANYTHING, fits, may_fit

_Pattern = Annotated[str, Field(min_length=1)]
Channel = Literal["terminal", "discord", "server", "proxy", "serve", "notebook", "unknown"]
"""The connector that received a request; `unknown` is a program that calls the graph itself."""


class Effect(StrEnum):
    """The effect of a rule, strictest first."""

    DENY = "deny"
    ASK = "ask"
    ALLOW = "allow"


class Rule(BaseModel):
    """One `[[policy.rules]]` of `packetgate.toml`."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)

    effect: Effect
    tool: _Pattern | None = None
    """A canonical name, in which `*` matches anything."""
    server: _Pattern | None = None
    arguments: dict[_Pattern, str] = {}
    """Patterns of `packetgate.tools.policy.patterns` by parameter."""
    channels: tuple[Channel, ...] | None = None

    @model_validator(mode="after")
    def _names_something(self) -> Self:
        if self.tool is None and self.server is None:
            raise ValueError('a rule needs tool = "server.tool" or server = "name"; * matches any part')
        if self.channels == ():
            raise ValueError("the list is empty: leave `channels` out to match all channels")
        return self

    @property
    def patterns(self) -> tuple[str, ...]:
        """The patterns of canonical tool names that the rule names."""
        return tuple(pattern for pattern in (self.tool, self.server and f"{self.server}.*") if pattern)

    @property
    def line(self) -> str:
        """The rule as text for users."""
        tool = self.tool or f"{self.server}.*"
        server = f" of server {self.server}" if self.tool and self.server else ""
        channels = f" in {', '.join(self.channels)}" if self.channels else ""
        return f"{self.effect} {tool}{server}{arguments_line(self.arguments)}{channels}"

    def is_about(self, tool: str, server: str) -> bool:
        """Return whether the rule names this tool, regardless of arguments and channel."""
        tools = self.tool is None or fnmatchcase(tool, self.tool)
        return tools and (self.server is None or fnmatchcase(server, self.server))

    def is_for(self, channel: str) -> bool:
        """Return whether the rule applies in this channel."""
        return self.channels is None or channel in self.channels

    def matches(self, params: Mapping[str, Any], known: Iterable[str]) -> bool:
        """Return whether the rule matches a call of a tool that the rule names. `known` are the tool's parameters."""
        if self.effect is Effect.ALLOW:
            named = {name: wanted for name, wanted in self.arguments.items() if wanted != ANYTHING}
            return all(name in params and fits(params[name], wanted) for name, wanted in named.items())
        own = {*known, *params}
        return all(
            name not in own or (name in params and may_fit(params[name], wanted))
            for name, wanted in self.arguments.items()
        )


def strictest_rule(rules: Iterable[Rule], params: Mapping[str, Any], known: Iterable[str], channel: str) -> Rule | None:
    """Return the strictest matching rule among the rules for the call's tool."""
    matching = [rule for rule in rules if rule.is_for(channel) and rule.matches(params, known)]
    return min(matching, key=lambda rule: list(Effect).index(rule.effect), default=None)


def denied_outright(rules: Iterable[Rule], channel: str) -> bool:
    """Return whether a rule denies a tool for all arguments. Such a tool is not listed."""
    return any(rule.effect is Effect.DENY and not rule.arguments and rule.is_for(channel) for rule in rules)


def arguments_line(arguments: Mapping[str, str], leeway: Mapping[str, str] | None = None) -> str:
    """Return patterns of arguments for people. `leeway` describes the other values that an argument may have."""
    left = dict(leeway or {})
    parts = []
    for name, wanted in arguments.items():
        alternatives = [f'{name} "{wanted}"', left.pop(name, "")] if wanted != ANYTHING else [f"any {name}"]
        parts.append(" or ".join(filter(None, alternatives)))
    parts += [
        f"{' and '.join(name for name, other in left.items() if other == words)} {words}"
        for words in dict.fromkeys(left.values())
    ]
    return f" with {', '.join(parts)}" if parts else ""
