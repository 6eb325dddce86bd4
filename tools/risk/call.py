"""What one call would do: the worse of what its tool does anyway and of what its arguments ask for."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from state.printing import printable
from state.routing import Risk, ToolCall
from tools.risk.address import outside_address
from tools.risk.features import kind_of
from tools.risk.judgement import Judgement
from tools.risk.parameters import takes
from tools.risk.reasons import MOST_CHARS
from tools.risk.sql import UNREADABLE, looks_like_sql, risk_of_sql
from tools.spec.tool_spec import ToolSpec
from tools.text.words import words_of

MAX_DEPTH = 8
_METHODS = frozenset({"DELETE", "PATCH", "POST", "PUT"})
_MODES = frozenset("action command method mode op operation verb".split())


class _Reason(NamedTuple):
    risk: Risk
    why: str


def judge_call(spec: ToolSpec, params: Mapping[str, Any]) -> Judgement:
    """Return what a call with these arguments may do. Whoever decides about a call asks this, never `spec.risk`.

    The user's word in `packetgate.toml` holds for every call. Arguments raise a tool's risk: SQL that changes
    something, a path to save to, a method or an action that changes, an address outside. They lower it in one case
    alone: a tool whose risk lies only in the SQL that it takes (its own text is that of a query tool, or its server is
    trusted, `least_risk`) makes a call that is what its SQL says, since SQL is parsed, and what is not surely a query
    counts as more. Without SQL to look at, such a call is as bad as its tool. Blocking.
    """
    open_world = spec.reaches_outside
    addresses = [(name, found) for name, value in params.items() if (found := outside_address(name, value))]
    outside = [f"its `{_quoted(name)}` points outside: {_quoted(found)}" for name, found in addresses]
    if spec.risk_is_given:
        return Judgement(spec.risk, open_world or bool(outside), (*spec.risk_why, *outside))
    held = {name: kind for kind, name in takes(spec.full, spec.input_schema)}
    reasons = [reason for name, value in params.items() for reason in _of_argument(name, value, held, spec)]
    floor, why = spec.risk, spec.risk_why
    lowers = spec.least_risk is not None and spec.least_risk.severity < spec.risk.severity
    if lowers and _is_told_by_sql(params, held):
        floor = spec.least_risk or spec.risk
        why = () if floor is Risk.READ else spec.risk_why
    worst = max((reason.risk for reason in reasons), key=lambda risk: risk.severity, default=Risk.READ)
    risk = max(floor, worst, key=lambda one: one.severity)
    told = [reason.why for reason in reasons if reason.risk is risk and (risk is not floor or not why)]
    return Judgement(
        risk, open_world or bool(outside), (*told, *why, *outside) if risk is floor or not told else (*told, *outside)
    )


def rated(call: ToolCall, spec: ToolSpec | None) -> ToolCall:
    """Return the call with what it may do on it; one whose tool is gone keeps what it was judged before."""
    if spec is None:
        return call
    judged = judge_call(spec, call.params)
    return call.rated(judged.risk, open_world=judged.open_world, why=judged.why)


def _quoted(text: str) -> str:
    return printable(" ".join(text.split()))[:MOST_CHARS]


def _is_told_by_sql(params: Mapping[str, Any], held: Mapping[str, str]) -> bool:
    """Whether the call gives SQL as text, and no other argument holds something to run."""
    return any(held.get(name) == "sql" and isinstance(value, str) for name, value in params.items()) and not any(
        held.get(name) in ("code", "command", "language") or (held.get(name) == "sql" and not isinstance(value, str))
        for name, value in params.items()
    )


def _of_argument(name: str, value: Any, held: Mapping[str, str], spec: ToolSpec, depth: int = 0) -> Iterator[_Reason]:
    """Yield what an argument, or what is within it, asks for."""
    if depth > MAX_DEPTH:
        yield _Reason(Risk.EXECUTE, f"its `{_quoted(name)}` is nested too deep to be read")
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _of_argument(str(key), inner, held, spec, depth + 1)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _of_argument(name, inner, held, spec, depth + 1)
    elif isinstance(value, str) and value.strip():
        yield from _of_text(name, value, held.get(name, ""), spec)


def _of_text(name: str, text: str, kind: str, spec: ToolSpec) -> Iterator[_Reason]:
    if kind == "sql" or looks_like_sql(text):
        risk, what = risk_of_sql(text)
        if kind == "sql" or (risk is not Risk.READ and what not in UNREADABLE):
            yield _Reason(risk if kind == "sql" else Risk.WRITE, f"its `{_quoted(name)}` is {what}")
    elif kind == "save":
        yield _Reason(Risk.WRITE, f"it saves to its `{_quoted(name)}`")
    words = {*words_of(name)}
    if text.upper() in _METHODS and words & {"method", "verb"}:
        yield _Reason(Risk.WRITE, f"its `{_quoted(name)}` says `{_quoted(text)}`")
    elif words & _MODES and "enum" in spec.parameters.get(name, {}):
        said = words_of(text)
        if said and kind_of(said[0]) in ("changes", "runs"):
            yield _Reason(Risk.WRITE, f"its `{_quoted(name)}` says `{_quoted(text)}`")
