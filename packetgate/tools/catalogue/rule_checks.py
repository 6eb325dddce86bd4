"""Find policy rules without effect."""

from collections.abc import Iterator, Mapping, Sequence

from packetgate.tools.policy.patterns import ANYTHING
from packetgate.tools.policy.rules import Effect, Rule
from packetgate.tools.spec.tool_spec import ToolSpec


def rule_problems(rules: Sequence[Rule], catalogue: Mapping[str, ToolSpec]) -> Iterator[str]:
    """Yield a line for each rule that can never match, or that matches more calls than it states.

    A rule whose tool or server does not exist is left out: `Preferences.unmatched_patterns` names it.
    """
    tools = [
        {name: spec for name, spec in catalogue.items() if rule.names_tool(spec.name, spec.server)} for rule in rules
    ]
    for number, rule in enumerate(rules):
        label = f"policy.rules.{number} ({rule.line})"
        known = {name for spec in tools[number].values() for name in spec.parameters}
        allows = rule.effect is Effect.ALLOW
        unknown = [
            name for name, one in rule.arguments.items() if name not in known and (one != ANYTHING or not allows)
        ]
        if unknown and tools[number]:
            effect = "has no effect" if allows else "matches any value"
            yield f"{label} {effect}: no tool of the rule has the argument {unknown[0]!r}"
            continue
        for other, stricter in enumerate(rules):
            if tools[number] and tools[number].keys() <= tools[other].keys() and _covers(stricter, rule):
                yield f"{label} has no effect: policy.rules.{other} is stricter and covers it"
                break


def _covers(stricter: Rule, rule: Rule) -> bool:
    """Return whether a stricter rule matches every call that a rule matches, among the same tools."""
    order = list(Effect)
    channels_fit = stricter.channels is None or (rule.channels is not None and {*rule.channels} <= {*stricter.channels})
    return (
        order.index(stricter.effect) < order.index(rule.effect)
        and channels_fit
        and all(rule.arguments.get(name) == pattern for name, pattern in stricter.arguments.items())
    )
