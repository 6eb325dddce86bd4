"""Find policy rules that can never hold."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from packetgate.tools.policy.patterns import ANYTHING, can_match_number, compares_numbers, fits, may_fit
from packetgate.tools.policy.rules import Effect, Rule
from packetgate.tools.spec.tool_spec import ToolSpec


def rule_problems(rules: Sequence[Rule], catalogue: Mapping[str, ToolSpec]) -> Iterator[str]:
    """Yield a line for each rule that can never hold, or that holds for more calls than it says.

    A rule whose tool or server does not exist is left out: `Preferences.unmatched_patterns` names it.
    """
    tools = [
        {name: spec for name, spec in catalogue.items() if rule.names_tool(spec.name, spec.server)} for rule in rules
    ]
    for number, rule in enumerate(rules):
        label = f"policy.rules.{number} ({rule.line})"
        if problem := _argument_problem(rule, tools[number]) or _contradiction(rule, tools[number], catalogue):
            yield f"{label} {problem}"
            continue
        for other, stricter in enumerate(rules):
            if tools[number] and tools[number].keys() <= tools[other].keys() and _covers(stricter, rule):
                yield f"{label} can never hold: policy.rules.{other} is stricter and covers it"
                break


def _contradiction(rule: Rule, tools: Mapping[str, ToolSpec], catalogue: Mapping[str, ToolSpec]) -> str:
    """Return a problem of a rule whose `tool` and `server` both exist, but not together."""
    parts = [rule.model_copy(update={"tool": None}), rule.model_copy(update={"server": None})]
    exist = all(any(part.names_tool(spec.name, spec.server) for spec in catalogue.values()) for part in parts)
    return "can never hold: its server has no such tool" if rule.tool and rule.server and not tools and exist else ""


def _argument_problem(rule: Rule, tools: Mapping[str, ToolSpec]) -> str:
    for name, pattern in rule.arguments.items():
        schemas = [spec.parameters[name] for spec in tools.values() if name in spec.parameters]
        if not tools or (rule.effect is Effect.ALLOW and pattern == ANYTHING):
            continue
        if not schemas and rule.effect is Effect.ALLOW:
            return f"can never hold: no tool of the rule has the argument {name!r}"
        if not schemas:
            return f"ignores the argument {name!r}: no tool of the rule has it, so the rule holds whatever its value"
        if not any(_may_hold(rule.effect, pattern, schema) for schema in schemas):
            return f"can never hold: no value of the argument {name!r} matches {pattern!r}"
    return ""


def _may_hold(effect: Effect, pattern: str, schema: Mapping[str, Any]) -> bool:
    """Return whether some value that a parameter's schema allows matches a pattern."""
    kind, matches = schema.get("type"), fits if effect is Effect.ALLOW else may_fit
    values = schema.get("enum") or ([schema["const"]] if "const" in schema else [])
    if kind == "boolean" and not values:
        values = [True, False]
    if values:
        return any(matches(value, pattern) for value in values)
    if kind in {"integer", "number"}:
        return can_match_number(pattern)
    return not (kind == "string" and effect is Effect.ALLOW and compares_numbers(pattern))


def _covers(stricter: Rule, rule: Rule) -> bool:
    """Return whether a stricter rule holds for every call that a rule holds for, among the same tools."""
    order = list(Effect)
    channels_fit = stricter.channels is None or (rule.channels is not None and {*rule.channels} <= {*stricter.channels})
    return (
        order.index(stricter.effect) < order.index(rule.effect)
        and channels_fit
        and all(rule.arguments.get(name) == pattern for name, pattern in stricter.arguments.items())
    )
