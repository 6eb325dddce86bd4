"""What may run, decided at execution, whatever any model said."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from packetgate.state.base import now
from packetgate.state.packet import CognitionPacket
from packetgate.state.redaction import holds_mark
from packetgate.state.routing import Risk, ToolCall
from packetgate.state.sections import Approval, ApprovalOutcome
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.checks.validation import check_call
from packetgate.tools.execution.grants import Grant, Grants
from packetgate.tools.execution.journal import Journal
from packetgate.tools.policy.rules import Effect, ruling
from packetgate.tools.risk.call import rated
from packetgate.tools.spec.tool_spec import ToolSpec, digest_of
from packetgate.tools.text.result_store import HANDLE_PREFIX

_GRANTED = frozenset({ApprovalOutcome.APPROVED, ApprovalOutcome.EDITED})


@dataclass(frozen=True)
class Need:
    """What must happen before a call runs: nothing, the user's word, or it must not."""

    kind: Literal["nothing", "approval", "refusal"]
    why: str = ""
    by: str = ""
    """The rule or the remembered grant that stands for the user's word."""
    grant_id: str = ""


@dataclass(frozen=True)
class Examined:
    """A call as it was found to be just before it may run."""

    call: ToolCall
    """With the risk that its arguments have."""
    refusal: str | None
    """Why it may not run."""
    approval: Approval | None = None
    """The newest approval of this very call."""


def examined(call: ToolCall, packet: CognitionPacket, catalogue: Catalogue) -> Examined:
    """Return whether `call` may run. Blocking.

    The name must be canonical, on this packet's palette and among the allowed tools, the arguments valid against the
    tool's schema, and an approval on record for exactly this call where one is needed. A risk that is
    switched off is not refused: it is a dry run.
    """
    context = packet.governance.settings
    if not context.allows_tool(call.tool_name):
        return Examined(call, f"{call.tool_name} is not among the tools that may be used here (allowed_tools).")
    corrections = check_call(call.tool_name, call.params, packet.context.palette_names, catalogue)
    if corrections:
        return Examined(call, " ".join(correction.message for correction in corrections))
    if packet.context.is_only_to_read_on(call.tool_name) and not str(call.params.get("path")).startswith(HANDLE_PREFIX):
        why = f"{call.tool_name} is offered only to read on in a long result: its path begins with {HANDLE_PREFIX!r}."
        return Examined(call, why)
    spec = catalogue[call.tool_name]
    call = rated(call, spec)
    need = need_of(call, spec, packet)
    if need.kind == "refusal":
        return Examined(call, f"{call.tool_name} {need.why}.")
    if call.risk is not Risk.READ and holds_mark(call.params):
        why = (
            f"{call.tool_name} may {call.risk}, and its arguments hold the mark of a secret that was taken out of what "
            "was read: it would put the mark in the secret's place. Change only what holds no secret, or do it by hand."
        )
        return Examined(call, why)
    approval = approval_of(call, packet, spec)
    if need.kind == "approval" and (approval is None or approval.is_by_rule):
        why = (
            f"{call.tool_name}: {need.why}, and no approval is on record for exactly these arguments, this "
            "definition of the tool and this server, or it has lapsed."
        )
        return Examined(call, why)
    if approval is None and need.by:
        why = f"{call.tool_name}: {need.by} allows it, and no approval by it is on record, or it has lapsed."
        return Examined(call, why)
    return Examined(call, None, approval)


def need_of(call: ToolCall, spec: ToolSpec, packet: CognitionPacket, grant: Grant | None = None) -> Need:
    """Return what a call needs; `grant` is a remembered one that covers it.

    The only place that says so: the gate asks before the question, and the execution asks again. What is loud is never
    allowed beforehand, and what is switched off is a dry run, which needs nobody's word.
    """
    rule = ruling(spec.rules, call.params, spec.parameters, packet.header.origin)
    if rule is not None and rule.effect is Effect.DENY:
        return Need("refusal", f"is denied by the policy: {rule.line}")
    if grant is not None and grant.effect == "deny":
        return Need("refusal", f"is denied by what you had remembered: {grant.line} (grant {grant.grant_id})")
    if not packet.governance.settings.allows(call.risk):
        return Need("nothing")
    loud = "; ".join(f"`{name}`: {origin.why}" for name, origin in call.provenance.items() if origin.loud)
    if loud:
        return Need("approval", loud)
    if rule is not None and rule.effect is Effect.ASK:
        return Need("approval", f"the policy says: {rule.line}")
    if call.risk is Risk.READ:
        return Need("nothing")
    if rule is not None:
        return Need("nothing", by=f"the policy: {rule.line}")
    if grant is not None:
        return Need("nothing", by=f"grant {grant.grant_id}: {grant.line}", grant_id=grant.grant_id)
    return Need("approval", f"{call.risk} tools need approval")


def approval_of(call: ToolCall, packet: CognitionPacket, spec: ToolSpec) -> Approval | None:
    """Return the newest approval of this very call, unless it has lapsed."""
    digest, at = call_digest(call, spec), now()
    return next(
        (
            approval
            for approval in reversed(packet.governance.approvals)
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


_GONE = Need("nothing")
"""Of a call whose tool is gone: its execution refuses it."""


async def needs_of(packet: CognitionPacket, catalogue: Catalogue, journal: Journal) -> dict[str, Need]:
    """Return what each call of this pass needs, by its id. Grants are looked up where the user lets them be."""
    calls = packet.routing.calls
    remembers = catalogue.preferences.policy.remember != "never"
    covering = [_covering(call, packet, catalogue, journal if remembers else None) for call in calls]
    return dict(zip((call.call_id for call in calls), await asyncio.gather(*covering), strict=True))


def allowed(
    calls: Sequence[ToolCall], needs: Mapping[str, Need], packet: CognitionPacket, catalogue: Catalogue
) -> list[Approval]:
    """Return the approvals that rules and remembered grants give calls which passed the gate."""
    expires = now() + timedelta(seconds=packet.governance.settings.ask_timeout_s)
    return [
        Approval(
            call_id=call.call_id,
            tool_name=call.tool_name,
            params=call.params,
            outcome=ApprovalOutcome.APPROVED,
            comment=f"by {need.by}",
            digest=call_digest(call, catalogue[call.tool_name]),
            expires_at=expires,
            by=need.by,
            grant_id=need.grant_id,
        )
        for call in calls
        if (need := needs[call.call_id]).by and call.status is ToolExecutionStatus.APPROVED
    ]


async def _covering(call: ToolCall, packet: CognitionPacket, catalogue: Catalogue, journal: Journal | None) -> Need:
    spec = catalogue.get(call.tool_name)
    if spec is None:
        return _GONE
    need = need_of(call, spec, packet)
    if journal is None or need.kind == "refusal" or (need.kind == "nothing" and not need.by):
        return need
    return need_of(call, spec, packet, await Grants(journal).covering(call, spec.digest, packet))
