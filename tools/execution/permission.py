"""What may run, decided at execution, whatever any model said."""

from state.base import now
from state.context import RoutingContext
from state.packet import CognitionPacket
from state.redaction import holds_mark
from state.routing import Risk, ToolCall
from state.sections import Approval, ApprovalOutcome
from tools.catalogue.catalogue import Catalogue
from tools.checks.validation import check_call
from tools.risk.call import judge_call
from tools.spec.tool_spec import ToolSpec, digest_of
from tools.text.kept import PREFIX

_GRANTED = frozenset({ApprovalOutcome.APPROVED, ApprovalOutcome.EDITED})


def refusal(call: ToolCall, packet: CognitionPacket, catalogue: Catalogue) -> str | None:
    """Return why `call` may not run, or None when it may.

    The name must be canonical, on this packet's palette and among the allowed tools, the arguments valid against the
    tool's schema, and above read, or with a loud argument, an approval on record for exactly this call. A risk that
    is switched off is not refused: it is a dry run.
    """
    context = packet.governance.settings
    if not context.allows_tool(call.tool_name):
        return f"{call.tool_name} is not among the tools that may be used here (allowed_tools)."
    corrections = check_call(call.tool_name, call.params, packet.context.palette_names, catalogue)
    if corrections:
        return " ".join(correction.message for correction in corrections)
    if packet.context.is_only_to_read_on(call.tool_name) and not str(call.params.get("path")).startswith(PREFIX):
        return f"{call.tool_name} is offered only to read on in a long result: its path begins with {PREFIX!r}."
    spec = catalogue[call.tool_name]
    risk = judge_call(spec, call.params).risk
    if risk is not Risk.READ and holds_mark(call.params):
        return (
            f"{call.tool_name} may {risk}, and its arguments hold the mark of a secret that was taken out of what was "
            "read: it would put the mark in the secret's place. Change only what holds no secret, or do it by hand."
        )
    if needs_approval(call, risk, context) and grant_for(call, packet, spec) is None:
        what = f"may {risk}" if risk is not Risk.READ else "was to be called with what you have to see first"
        return (
            f"{call.tool_name} {what}, and no approval is on record for exactly these arguments, this "
            "definition of the tool and this server, or it has lapsed."
        )
    return None


def needs_approval(call: ToolCall, risk: Risk, context: RoutingContext) -> bool:
    """Whether a call really runs and only with the user's word: above read, or with an argument that is loud."""
    return context.allows(risk) and (call.is_loud or risk is not Risk.READ)


def grant_for(call: ToolCall, packet: CognitionPacket, spec: ToolSpec) -> Approval | None:
    """Return the user's approval of this very call, unless it has lapsed."""
    digest, at = call_digest(call, spec), now()
    return next(
        (
            approval
            for approval in packet.governance.approvals
            if approval.call_id == call.call_id
            and approval.outcome in _GRANTED
            and approval.digest == digest
            and approval.expires_at is not None
            and at <= approval.expires_at
        ),
        None,
    )


def call_digest(call: ToolCall, spec: ToolSpec) -> str:
    """Return what an approval of a call holds for: its arguments, its tool's definition and its server."""
    return digest_of([spec.digest, call.params])
