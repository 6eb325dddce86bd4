"""Which rules can never hold for any call, and why."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from packetgate.tools.policy.patterns import ANYTHING, fits, is_number, may_fit
from packetgate.tools.policy.rules import Effect, Rule
from packetgate.tools.spec.tool_spec import ToolSpec


def idle(rules: Sequence[Rule], tools: Collection[ToolSpec]) -> Iterator[tuple[int, str]]:
    """Yield the rules that hold for no call of the tools that there are: each by its place, and why.

    One whose tool is not there is none of them: its server may be down.
    """
    for number, rule in enumerate(rules):
        about = [one for one in tools if rule.is_about(one.name, one.server)]
        reasons = [_shadowed(rule, rules, one) or _against(rule, one) for one in about]
        if reasons and all(reasons):
            yield number, reasons[0]


def _shadowed(rule: Rule, rules: Sequence[Rule], tool: ToolSpec) -> str:
    """Return why a rule never decides: another denies the tool altogether."""
    if rule.effect is Effect.DENY:
        return ""
    for other in rules:
        everywhere = other.channels is None or (rule.channels is not None and {*rule.channels} <= {*other.channels})
        outright = other.effect is Effect.DENY and not other.arguments and everywhere
        if outright and other.is_about(tool.name, tool.server):
            return f"another rule denies {tool.name} altogether: {other.line}"
    return ""


def _against(rule: Rule, tool: ToolSpec) -> str:
    """Return why no call of a tool fits what a rule says of its arguments."""
    allows = rule.effect is Effect.ALLOW
    holds = fits if allows else may_fit
    for name, wanted in rule.arguments.items():
        if wanted == ANYTHING:
            continue
        schema, quoted = tool.parameters.get(name), json.dumps(wanted, ensure_ascii=False)
        if allows and _climbs(wanted):
            return f"{name} = {quoted}: what allows never follows `.` or `..`"
        if schema is None and allows and not tool.is_open:
            return f"{tool.name} has no parameter {name!r}, and what allows holds only for what it names"
        values = _values(schema or {})
        if values and not any(holds(value, wanted) for value in values):
            return f"{name!r} of {tool.name} is {' or '.join(map(_said, values))}: {quoted} fits none of them"
        if schema and schema.get("type") in ("integer", "number") and "*" not in wanted and not _is_number(wanted):
            return f"{name!r} of {tool.name} is a number, which {quoted} never fits"
    return ""


def _values(schema: Mapping[str, Any]) -> Sequence[Any]:
    """Return all values that a parameter, or an element of it, can have; none where they are without number."""
    items = schema.get("items")
    known = items if schema.get("type") == "array" and isinstance(items, dict) else schema
    choices = known.get("enum")
    return choices if isinstance(choices, list) else [True, False] if known.get("type") == "boolean" else []


def _climbs(wanted: str) -> bool:
    return "*" in wanted and bool({".", ".."} & {*wanted.replace("\\", "/").split("/")})


def _is_number(text: str) -> bool:
    try:
        return is_number(json.loads(text))
    except ValueError:
        return False


def _said(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
