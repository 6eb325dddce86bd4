"""What one call would do: the worse of what its tool may do and of what its arguments ask for."""

from collections.abc import Mapping
from typing import Any

from state.routing import ToolCall
from tools.risk.address import outside_address
from tools.risk.judgement import Judgement
from tools.spec.tool_spec import ToolSpec


def judge_call(spec: ToolSpec, params: Mapping[str, Any]) -> Judgement:
    """Return what a call with these arguments may do. Whoever decides about a call asks this, never `spec.risk`."""
    why, open_world = list(spec.risk_why), spec.reaches_outside
    for name, value in params.items():
        address = outside_address(name, value)
        if address and not open_world:
            open_world = True
            why.append(f"its `{name}` points outside: {address}")
    return Judgement(risk=spec.risk, open_world=open_world, why=tuple(why))


def rated(call: ToolCall, spec: ToolSpec | None) -> ToolCall:
    """Return the call with what it may do on it; one whose tool is gone keeps what it was judged before."""
    if spec is None:
        return call
    judged = judge_call(spec, call.params)
    return call.rated(judged.risk, open_world=judged.open_world, why=judged.why)
