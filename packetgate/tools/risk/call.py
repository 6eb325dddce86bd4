"""The risk of one call: the worse of its tool's risk and of what its arguments do."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from packetgate.state.routing import Risk, ToolCall
from packetgate.tools.risk.arguments import outside_address, quoted, reasons_in
from packetgate.tools.risk.parameters import Kind, parameter_kinds
from packetgate.tools.spec.tool_spec import ToolSpec

KEPT_CHARS = 4_000
"""Longest arguments, as JSON, whose judgement is cached."""


@dataclass(frozen=True)
class Judgement:
    """The risk of a tool or a call."""

    risk: Risk
    open_world: bool = False
    """Whether the tool or call reaches outside the user's own machine and servers."""
    why: tuple[str, ...] = ()
    """Reasons, the strongest first."""
    unvouched: bool = False
    """Whether this looks like a read but counts as a write, because no trusted server or user confirms the read."""

    @property
    def looks(self) -> Risk:
        """The apparent risk, for matching requests; never used for permission."""
        return Risk.READ if self.unvouched else self.risk


def judge_call(spec: ToolSpec, params: Mapping[str, Any]) -> Judgement:
    """Return the risk of a call. Permission depends on this, not on `spec.risk`. Blocking.

    Arguments can only raise the risk, with one exception: a call of a trusted server's SQL tool has the risk of its
    SQL (`least_risk`), because SQL is parsed.
    """
    arguments = json.dumps(params)
    judge = _judged if len(arguments) <= KEPT_CHARS else _judged.__wrapped__
    return judge(spec, arguments)


def with_risk(call: ToolCall, spec: ToolSpec | None) -> ToolCall:
    """Return the call with its risk; unchanged if its tool is gone."""
    if spec is None:
        return call
    judged = judge_call(spec, call.params)
    return call.rated(judged.risk, open_world=judged.open_world, why=judged.why, unvouched=judged.unvouched)


@lru_cache(maxsize=256)
def _judged(spec: ToolSpec, arguments: str) -> Judgement:
    params: dict[str, Any] = json.loads(arguments)
    addresses = [(name, found) for name, value in params.items() if (found := outside_address(name, value))]
    outside = tuple(f"its `{quoted(name)}` points outside: {quoted(address)}" for name, address in addresses)
    open_world = spec.reaches_outside or bool(outside)
    if spec.risk_holds:
        return Judgement(spec.risk, open_world, spec.risk_why + outside)
    kinds = _kinds_of(spec)
    reasons = [*dict.fromkeys(reasons_in(params, kinds))]
    floor, why, is_sql = spec.risk, spec.risk_why, _is_sql_call(params, kinds)
    if is_sql and spec.least_risk is not None and spec.least_risk.severity < spec.risk.severity:
        floor = spec.least_risk
        why = () if floor is Risk.READ else spec.risk_why
    worst = max([Risk.READ, *(reason.risk for reason in reasons)], key=lambda risk: risk.severity)
    risk = max(floor, worst, key=lambda risk: risk.severity)
    raised = tuple(reason.why for reason in reasons if reason.risk is risk and (risk is not floor or not why))
    tool_reasons = why if risk is floor or not raised else ()
    unvouched = spec.unvouched and worst is Risk.READ and (spec.risk is not Risk.EXECUTE or is_sql)
    return Judgement(risk, open_world, raised + tool_reasons + outside, unvouched)


@lru_cache(maxsize=4_096)
def _kinds_of(spec: ToolSpec) -> Mapping[str, Kind]:
    return {name: kind for kind, name in parameter_kinds(spec.full, spec.input_schema)}


def _is_sql_call(params: Mapping[str, Any], kinds: Mapping[str, Kind]) -> bool:
    """Return whether a call takes SQL as text, and no other argument holds something to run."""
    runnable = [name for name in params if kinds.get(name) in ("sql", "code", "command", "language")]
    return bool(runnable) and all(kinds[name] == "sql" and isinstance(params[name], str) for name in runnable)
