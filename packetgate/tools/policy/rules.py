"""The policy rules of `packetgate.toml`: allow, ask about or deny calls. The strictest matching rule decides.

A mistake in a rule can only forbid more: an allow rule matches only calls that it describes completely, and an ask or
deny rule also matches tools that lack a parameter of the rule.
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
    """For each parameter, the pattern that its value must fit (`packetgate.tools.policy.patterns`)."""
    channels: tuple[Channel, ...] | None = None

    @model_validator(mode="after")
    def _require_tool_or_server(self) -> Self:
        if self.tool is None and self.server is None:
            raise ValueError('a rule needs tool = "server.tool" or server = "name"; * matches any part')
        if self.channels == ():
            raise ValueError("`channels` is empty: leave `channels` out to match all channels")
        return self

    @property
    def patterns(self) -> tuple[str, ...]:
        """The patterns of canonical tool names in the rule."""
        return tuple(pattern for pattern in (self.tool, self.server and f"{self.server}.*") if pattern)

    @property
    def line(self) -> str:
        """The rule as text for users."""
        tool = self.tool or f"{self.server}.*"
        server = f" of server {self.server}" if self.tool and self.server else ""
        channels = f" in {', '.join(self.channels)}" if self.channels else ""
        return f"{self.effect} {tool}{server}{arguments_line(self.arguments)}{channels}"

    def names_tool(self, tool: str, server: str) -> bool:
        """Return whether the rule is for this tool, regardless of arguments and channel."""
        is_named = self.tool is None or fnmatchcase(tool, self.tool)
        return is_named and (self.server is None or fnmatchcase(server, self.server))

    def applies_in(self, channel: str) -> bool:
        """Return whether the rule applies in this channel."""
        return self.channels is None or channel in self.channels

    def matches(self, params: Mapping[str, Any], parameters: Iterable[str]) -> bool:
        """Return whether the rule matches a call of its tool. `parameters` are the names of the tool's parameters."""
        if self.effect is Effect.ALLOW:
            patterns = {name: pattern for name, pattern in self.arguments.items() if pattern != ANYTHING}
            return all(name in params and fits(params[name], pattern) for name, pattern in patterns.items())
        known = {*parameters, *params}
        return all(
            name not in known or (name in params and may_fit(params[name], pattern))
            for name, pattern in self.arguments.items()
        )


def strictest_rule(
    rules: Iterable[Rule], params: Mapping[str, Any], parameters: Iterable[str], channel: str
) -> Rule | None:
    """Return the strictest matching rule among the rules for the call's tool."""
    matching = [rule for rule in rules if rule.applies_in(channel) and rule.matches(params, parameters)]
    return min(matching, key=lambda rule: list(Effect).index(rule.effect), default=None)


def is_always_denied(rules: Iterable[Rule], channel: str) -> bool:
    """Return whether a rule denies every call of a tool. Such a tool is not listed."""
    return any(rule.effect is Effect.DENY and not rule.arguments and rule.applies_in(channel) for rule in rules)


def arguments_line(arguments: Mapping[str, str], alternatives: Mapping[str, str] | None = None) -> str:
    """Return patterns of arguments as text for users. `alternatives` describes other allowed values."""
    remaining = dict(alternatives or {})
    parts = []
    for name, pattern in arguments.items():
        options = [f'{name} "{pattern}"', remaining.pop(name, "")] if pattern != ANYTHING else [f"any {name}"]
        parts.append(" or ".join(filter(None, options)))
    parts += [
        f"{' and '.join(name for name, other in remaining.items() if other == words)} {words}"
        for words in dict.fromkeys(remaining.values())
    ]
    return f" with {', '.join(parts)}" if parts else ""
