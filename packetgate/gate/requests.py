"""Turn a request for a call into a call that the gate can judge: repaired, valid, with its risk and origins."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from packetgate.gate.checks import refusal_code
from packetgate.gate.facts import Facts
from packetgate.gate.provenance.flagging import origins_of
from packetgate.state.codes import Code
from packetgate.state.errors import CallRefusedError
from packetgate.state.routing import Correction, Risk, ToolCall
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.checks.checking import repair_call, validate_call
from packetgate.tools.risk.call import with_risk
from packetgate.tools.risk.tool import confirm_read_hint
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.result_store import session_results

CHOSEN_BY_CLIENT = "chosen by the client, which gave no reason"


@dataclass(frozen=True)
class RequestedCall:
    """A call that a client requests."""

    name: str
    params: Mapping[str, Any]
    refusal_if_changing: str = ""
    """For a call that must only read: the instruction to the client if the call would change something."""
    call_id: str = ""
    """Journal id of a call that may be proposed again; if empty, the call gets a new id."""


def requested_call(requested: RequestedCall, facts: Facts, hint: str = "") -> tuple[ToolCall, tuple[Correction, ...]]:
    """Return a client's call, and its repairs. Blocking.

    Args:
        hint: added to the refusal of an unknown tool.

    Raises:
        CallRefusedError: the tool does not exist, an argument is invalid, or the call would change something.
    """
    checked = repair_call(requested.name, requested.params, facts.catalogue)
    if checked.tool_name not in facts.catalogue:
        message = _unknown_tool_message(requested.name, facts.catalogue) + hint
        raise CallRefusedError(message, code=Code.TOOL_UNKNOWN)
    checked = validate_call(checked, facts.offered, facts.catalogue)
    if checked.problems:
        message = " ".join(problem.message for problem in checked.problems)
        raise CallRefusedError(message, code=refusal_code(checked.problems[0]))
    spec, params = facts.catalogue[checked.tool_name], checked.params
    if spec.derived_parameters and spec.resolve_arguments:
        with session_results(facts.header.session_id):
            params = spec.resolve_arguments(params)
    call = traced_call(spec, params, facts).changed(selection_reasoning=CHOSEN_BY_CLIENT)
    if requested.call_id:
        call = call.changed(call_id=requested.call_id)
    if requested.refusal_if_changing and call.risk is not Risk.READ:
        reasons = f": {'; '.join(call.risk_reasons)}" if call.risk_reasons else ""
        read_hint = f" {confirm_read_hint(call)}" if call.is_unconfirmed_read else ""
        message = f"{call.tool_name} may {call.risk}{reasons}. {requested.refusal_if_changing}{read_hint}"
        raise CallRefusedError(message, code=Code.NOT_READ_ONLY)
    return call, checked.repairs


def traced_call(spec: ToolSpec, params: Mapping[str, Any], facts: Facts) -> ToolCall:
    """Return a call with its risk and the origins of its arguments. Blocking."""
    origins = origins_of(params, spec, facts.sources)
    return with_risk(ToolCall(tool_name=spec.name, params=dict(params), provenance=origins), spec)


def _unknown_tool_message(name: str, catalogue: Catalogue) -> str:
    nearest = ", ".join(catalogue[tool].listed_name for tool in catalogue.similar_names(name))
    fallback = "no tool has a similar name" if catalogue else "no tools are available"
    hint = f"similar names: {nearest}" if nearest else fallback
    return f"unknown tool {name!r}: {hint}"
