"""Compare policy rules with calls of the journal."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from packetgate.tools.policy.rules import Rule


@dataclass(frozen=True)
class ProposedCall:
    """A call that was proposed, whether it ran or not."""

    at: datetime
    tool: str
    params: Mapping[str, Any]
    channel: str


@dataclass(frozen=True)
class Trial:
    """The calls that a rule would have matched, and its near misses, newest first."""

    rule: Rule
    matches: tuple[ProposedCall, ...]
    near_misses: tuple[tuple[ProposedCall, str], ...]
    """Calls of the rule's tool that match except for one part: an argument, or `channels`."""


def try_rules(rules: Iterable[Rule], calls: Sequence[ProposedCall]) -> Iterator[Trial]:
    """Yield a trial of each rule. The tools are expected to have the arguments of the rule."""
    newest = sorted(calls, key=lambda call: call.at, reverse=True)
    for rule in rules:
        mine = [call for call in newest if rule.names_tool(call.tool, call.tool.partition(".")[0])]
        failed = [(call, _failed_parts(rule, call)) for call in mine]
        near = tuple((call, parts[0]) for call, parts in failed if len(parts) == 1)
        yield Trial(rule, tuple(call for call, parts in failed if not parts), near)


def _failed_parts(rule: Rule, call: ProposedCall) -> list[str]:
    parts = [] if rule.applies_in(call.channel) else ["channels"]
    for name, pattern in rule.arguments.items():
        if not rule.model_copy(update={"arguments": {name: pattern}}).matches(call.params, [name]):
            parts.append(name)
    return parts
