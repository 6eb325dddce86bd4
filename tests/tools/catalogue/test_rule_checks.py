"""Policy rules without effect."""

import pytest
from support.tool_specs import a_tool

from packetgate.state.routing import Risk
from packetgate.tools.catalogue.rule_checks import rule_problems
from packetgate.tools.policy.rules import Rule

PAY = a_tool(
    "bank.pay",
    risk=Risk.WRITE,
    to={"type": "string"},
    amount={"type": "number"},
)
CATALOGUE = {PAY.name: PAY}


def problems(*rules: Rule) -> list[str]:
    return [*rule_problems(rules, CATALOGUE)]


def rule(effect: str, tool: str = "bank.pay", **arguments: str) -> Rule:
    return Rule.model_validate({"effect": effect, "tool": tool, "arguments": arguments})


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (rule("allow", note="x"), "no tool of the rule has the argument 'note'"),
        (rule("deny", note="x"), "matches any value: no tool of the rule has the argument 'note'"),
    ],
)
def test_a_rule_that_can_never_hold_is_named(one: Rule, why: str):
    (problem,) = problems(one)
    assert why in problem
    assert one.line in problem


@pytest.mark.parametrize(
    "one",
    [
        rule("allow", to="*@corp.example", amount=">= 0, <= 100"),
        rule("allow", note="**"),
        rule("deny", tool="bank.*", amount="7"),
        rule("allow", tool="shop.buy"),
    ],
)
def test_usable_rules_have_no_problem(one: Rule):
    assert not problems(one)


def test_a_rule_behind_a_stricter_one_is_named():
    stricter = rule("deny", tool="bank.*", to="*@evil.example")
    shadowed = rule("allow", to="*@evil.example", amount="5")
    (problem,) = problems(shadowed, stricter)
    assert "policy.rules.1 is stricter and covers it" in problem
    assert not problems(rule("allow", to="*@corp.example"), stricter)
    limited = stricter.model_copy(update={"channels": ("proxy",)})
    assert not problems(shadowed, limited)
