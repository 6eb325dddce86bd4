"""What one call would do: the worse of what its tool does anyway and of what its arguments ask for."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from packetgate.state.routing import Risk, ToolCall
from packetgate.tools.risk.address import outside_address
from packetgate.tools.risk.arguments import quoted, reasons_in
from packetgate.tools.risk.parameters import Kind, takes
from packetgate.tools.spec.tool_spec import ToolSpec


@dataclass(frozen=True)
class Judgement:
    """What a tool or a call may do, and why that is thought."""

    risk: Risk
    open_world: bool = False
    """Whether it reaches out of the user's own machine and servers."""
    why: tuple[str, ...] = ()
    """Reasons in words, the strongest first."""
    unvouched: bool = False
    """Whether it looks like one that only reads, and counts as more because nothing vouches for that."""

    @property
    def looks(self) -> Risk:
        """What it looks like, by what was learned too: for what a request is about, never for what may run."""
        return Risk.READ if self.unvouched else self.risk


KEPT_CHARS = 4_000
"""Longest arguments whose judgement is cached: longer ones, such as whole files, would fill the memory."""
_SCALE = (*Risk,)


def judge_call(spec: ToolSpec, params: Mapping[str, Any]) -> Judgement:
    """Return what a call with these arguments may do. Whoever decides about a call asks this, never `spec.risk`.

    Arguments raise what a tool is known to do, be it by the user's word that it reads; their word that it does more
    holds for every call. They lower it in one case alone: a trusted server's tool whose risk lies only in the SQL that
    it takes (`least_risk`) makes a call that is what its SQL says, since SQL is parsed, and what is not surely a query
    counts as more. Without SQL to look at, such a call is as bad as its tool. Blocking.
    """
    arguments = json.dumps(params)
    judge = _judged if len(arguments) <= KEPT_CHARS else _judged.__wrapped__
    return judge(spec, arguments)


@lru_cache(maxsize=256)
def _judged(spec: ToolSpec, arguments: str) -> Judgement:
    """Judge arguments, as JSON: whoever checks the same call again is told the same."""
    params: dict[str, Any] = json.loads(arguments)
    addresses = [(name, found) for name, value in params.items() if (found := outside_address(name, value))]
    outside = [f"its `{quoted(name)}` points outside: {quoted(found)}" for name, found in addresses]
    open_world = spec.reaches_outside or bool(outside)
    if spec.risk_holds:
        return Judgement(spec.risk, open_world, (*spec.risk_why, *outside))
    held = _held_by(spec)
    reasons = [*dict.fromkeys(reasons_in(params, held))]
    floor, why, told_by_sql = spec.risk, spec.risk_why, _is_told_by_sql(params, held)
    if told_by_sql and spec.least_risk is not None and spec.least_risk.severity < spec.risk.severity:
        floor = spec.least_risk
        why = () if floor is Risk.READ else spec.risk_why
    worst = max([Risk.READ, *[reason.risk for reason in reasons]], key=_SCALE.index)
    risk = max(floor, worst, key=_SCALE.index)
    told = [reason.why for reason in reasons if reason.risk is risk and (risk is not floor or not why)]
    told += why if risk is floor or not told else ()
    looks = spec.unvouched and worst is Risk.READ and (spec.risk is not Risk.EXECUTE or told_by_sql)
    return Judgement(risk, open_world, (*told, *outside), looks)


@lru_cache(maxsize=4_096)
def _held_by(spec: ToolSpec) -> Mapping[str, Kind]:
    return {name: kind for kind, name in takes(spec.full, spec.input_schema)}


def rated(call: ToolCall, spec: ToolSpec | None) -> ToolCall:
    """Return the call with what it may do on it; one whose tool is gone keeps what it was judged before."""
    if spec is None:
        return call
    judged = judge_call(spec, call.params)
    return call.rated(judged.risk, open_world=judged.open_world, why=judged.why, unvouched=judged.unvouched)


def _is_told_by_sql(params: Mapping[str, Any], held: Mapping[str, str]) -> bool:
    """Whether the call gives SQL as text, and no other argument holds something to run."""
    return any(held.get(name) == "sql" and isinstance(value, str) for name, value in params.items()) and not any(
        held.get(name) in ("code", "command", "language") or (held.get(name) == "sql" and not isinstance(value, str))
        for name, value in params.items()
    )
