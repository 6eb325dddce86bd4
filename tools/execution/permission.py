"""What may run, decided at execution, whatever any model said."""

from state.context import RoutingContext
from state.packet import CognitionPacket
from state.routing import Risk, ToolCall
from state.sections import ApprovalOutcome
from tools.catalogue.catalogue import Catalogue
from tools.checks.validation import canonical_json, check_call

_GRANTED = frozenset({ApprovalOutcome.APPROVED, ApprovalOutcome.EDITED})


def refusal(call: ToolCall, packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext) -> str | None:
    """Return why `call` may not run, or None when it may.

    The name must be canonical, on this packet's palette and among the allowed tools, the arguments valid against the
    tool's schema, and above read an approval on record for exactly these arguments. A risk that is switched off is not
    refused: it is a dry run.
    """
    if not context.allows_tool(call.tool_name):
        return f"{call.tool_name} is not among the tools that may be used here (allowed_tools)."
    corrections = check_call(call.tool_name, call.params, packet.context.palette_names, catalogue)
    if corrections:
        return " ".join(correction.message for correction in corrections)
    risk = catalogue[call.tool_name].risk
    if risk is not Risk.READ and context.allows(risk) and not approved_exactly(call, packet):
        return f"{call.tool_name} may {risk}, and no approval is on record for exactly these arguments."
    return None


def approved_exactly(call: ToolCall, packet: CognitionPacket) -> bool:
    """Whether the user approved this call with these very arguments."""
    wanted = canonical_json(call.params)
    return any(
        approval.call_id == call.call_id
        and approval.tool_name == call.tool_name
        and approval.outcome in _GRANTED
        and canonical_json(approval.params) == wanted
        for approval in packet.governance.approvals
    )
