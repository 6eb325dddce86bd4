"""Check directly before execution whether a call may run, whatever a model decided."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from packetgate.state.base import now
from packetgate.state.codes import Code
from packetgate.state.errors import CallRefusedError
from packetgate.state.packet import CognitionPacket
from packetgate.state.redaction import has_redaction_mark
from packetgate.state.routing import Correction, Risk, ToolCall
from packetgate.state.sections import Approval, ApprovalOutcome
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.checks.validation import check_call
from packetgate.tools.execution.grants import Grant, Grants
from packetgate.tools.execution.journal import Journal
from packetgate.tools.policy.rules import Effect, strictest_rule
from packetgate.tools.risk.call import LOOKS_LIKE_READ, with_risk
from packetgate.tools.spec.tool_spec import ToolSpec, digest_of
from packetgate.tools.text.result_store import HANDLE_PREFIX

_APPROVING_OUTCOMES = frozenset({ApprovalOutcome.APPROVED, ApprovalOutcome.EDITED})
_CHANNELS_OF_OTHERS = frozenset({"discord", "serve"})
"""Channels in which people other than the operator ask: they cannot approve an apparent read if writes are off."""
_CODES = {"unknown_tool": Code.TOOL_UNKNOWN, "alias": Code.TOOL_UNKNOWN, "off_palette": Code.TOOL_NOT_OFFERED}


@dataclass(frozen=True)
class Need:
    """What a call needs before it runs: nothing, an approval, or a refusal of the call."""

    kind: Literal["nothing", "approval", "refusal"]
    why: str = ""
    allowed_by: str = ""
    """The rule or grant that allows the call without a question."""
    grant_id: str = ""
    code: Code | None = None
    or_dry_run: bool = False
    """Whether the call is a dry run without the approval, because its risk is disabled."""


def check_permission(call: ToolCall, packet: CognitionPacket, catalogue: Catalogue) -> tuple[ToolCall, Approval | None]:
    """Return the call with its current risk, and its newest valid approval. Blocking.

    A disabled risk is not refused here: the call is executed as a dry run.

    Raises:
        CallRefusedError: the tool is not allowed, not canonical or not on the packet's palette, the arguments are not
            valid against its schema, or the call needs an approval and none is recorded for exactly this call.
    """
    name = call.tool_name
    if not packet.governance.settings.allows_tool(name):
        raise CallRefusedError(
            f"{name} is not in the allow-list (allowed_tools): use an allowed tool, or add {name} to the list.",
            code=Code.TOOL_NOT_ALLOWED,
        )
    corrections = check_call(name, call.params, packet.context.palette_names, catalogue)
    if corrections:
        message = " ".join(correction.message for correction in corrections)
        raise CallRefusedError(message, code=refusal_code(corrections[0]))
    if packet.context.is_limited_to_results(name) and not str(call.params.get("path")).startswith(HANDLE_PREFIX):
        message = f"{name} can read only stored results in this turn: use a path that begins with {HANDLE_PREFIX!r}."
        raise CallRefusedError(message, code=Code.TOOL_NOT_OFFERED)
    spec = catalogue[name]
    call = with_risk(call, spec)
    need, approval = need_of(call, spec, packet), _approval_of(call, packet, spec)
    if need.code is not None:
        raise CallRefusedError(f"{name} {need.why}.", code=need.code)
    if call.risk is not Risk.READ and has_redaction_mark(call.params):
        message = (
            f"{name} may {call.risk}, and its arguments contain the placeholder of a redacted secret: the call "
            "would replace the secret by the placeholder. Leave out the secret, or make the change by hand."
        )
        raise CallRefusedError(message, code=Code.MARKED_ARGUMENT)
    if need.kind == "approval" and (approval is None or approval.is_by_rule):
        if need.or_dry_run:
            return call, None
        message = (
            f"{name}: {need.why}, and there is no unexpired approval for exactly these arguments, this "
            "definition of the tool and this server. Send the request again to be asked."
        )
        raise CallRefusedError(message, code=Code.APPROVAL_MISSING)
    if need.allowed_by and approval is None:
        message = (
            f"{name}: {need.allowed_by} allows the call, but the approval was not recorded or has expired. "
            "Send the request again."
        )
        raise CallRefusedError(message, code=Code.APPROVAL_MISSING)
    return call, approval


def refusal_code(correction: Correction) -> Code:
    """Return the code of the refusal for an invalid call."""
    return _CODES.get(correction.problem, Code.ARGUMENTS_INVALID)


def may_run(call: ToolCall, packet: CognitionPacket, approval: Approval | None) -> bool:
    """Return whether a permitted call runs; otherwise it is a dry run.

    With writes switched off, a call that looks like a read may run if it was approved.
    """
    if packet.governance.settings.allows(call.risk):
        return True
    may_be_asked = packet.header.origin not in _CHANNELS_OF_OTHERS
    return call.is_unconfirmed_read and approval is not None and (may_be_asked or bool(approval.grant_id))


def need_of(call: ToolCall, spec: ToolSpec, packet: CognitionPacket, grant: Grant | None = None) -> Need:
    """Return what a call needs before it runs. `grant` is the grant that covers the call.

    No rule or grant allows a flagged call. A call whose risk is disabled needs nothing, because it is a dry run; a call
    that looks like a read can be approved nevertheless.
    """
    is_on = packet.governance.settings.allows(call.risk)
    trust = grant if grant is not None and grant.effect == "trust" else None
    rule = strictest_rule(spec.rules, call.params, spec.parameters, packet.header.origin)
    if rule is not None and rule.effect is Effect.DENY:
        return Need("refusal", f"is denied by a policy rule: {rule.line}", code=Code.POLICY_DENIED)
    if grant is not None and grant.effect == "deny":
        why = f"is denied by a remembered answer: {grant.line} (grant {grant.grant_id})"
        return Need("refusal", why, code=Code.GRANT_DENIED)
    may_ask = call.is_unconfirmed_read and packet.header.origin not in _CHANNELS_OF_OTHERS
    if not is_on and trust is None and not may_ask:
        return Need("nothing")
    flagged = "; ".join(f"`{name}`: {origin.why}" for name, origin in call.provenance.items() if origin.is_flagged)
    if flagged:
        return Need("approval", flagged, or_dry_run=not is_on)
    if rule is not None and rule.effect is Effect.ASK:
        return Need("approval", f"a policy rule asks about this call: {rule.line}", or_dry_run=not is_on)
    if call.risk is Risk.READ:
        return Need("nothing")
    if rule is not None and is_on:
        return Need("nothing", allowed_by=f"the policy: {rule.line}")
    if grant is not None and (is_on or trust is not None):
        return Need("nothing", allowed_by=f"grant {grant.grant_id}: {grant.line}", grant_id=grant.grant_id)
    if call.is_unconfirmed_read:
        return Need("approval", f"{call.tool_name} {LOOKS_LIKE_READ}", or_dry_run=not is_on)
    return Need("approval", f"{call.risk} tools need approval")


async def needs_of(packet: CognitionPacket, catalogue: Catalogue, journal: Journal) -> dict[str, Need]:
    """Return what each call of this pass needs, by call id."""

    async def need(call: ToolCall) -> Need:
        spec = catalogue.get(call.tool_name)
        if spec is None:  # refused at execution
            return Need("nothing")
        need = await asyncio.to_thread(need_of, call, spec, packet)
        policy = catalogue.preferences.policy
        needs_grant = need.kind == "approval" or (need.kind == "nothing" and bool(need.allowed_by))
        may_have_trust = call.is_unconfirmed_read and need.kind != "refusal" and policy.remembers_trust
        only_trust = policy.remember == "never" or not needs_grant
        if not may_have_trust and (not needs_grant or only_trust):
            return need
        grant = await Grants(journal).covering(call, spec.digest, packet, only_trust=only_trust)
        return await asyncio.to_thread(need_of, call, spec, packet, grant)

    calls = packet.routing.calls
    return dict(zip((call.call_id for call in calls), await asyncio.gather(*map(need, calls)), strict=True))


def call_digest(call: ToolCall, spec: ToolSpec) -> str:
    """Return the digest of a call's arguments, tool definition and server. An approval is valid for one digest."""
    return digest_of([spec.digest, call.params])


def approvals_without_question(
    calls: Sequence[ToolCall], needs: Mapping[str, Need], packet: CognitionPacket, catalogue: Catalogue
) -> list[Approval]:
    """Return the approvals of calls that passed the gate and that a rule or grant allows."""
    expires = now() + timedelta(seconds=packet.governance.settings.ask_timeout_s)
    return [
        Approval(
            call_id=call.call_id,
            tool_name=call.tool_name,
            params=call.params,
            outcome=ApprovalOutcome.APPROVED,
            comment=f"by {need.allowed_by}",
            digest=call_digest(call, catalogue[call.tool_name]),
            expires_at=expires,
            by=need.allowed_by,
            grant_id=need.grant_id,
        )
        for call in calls
        if (need := needs[call.call_id]).allowed_by and call.status is ToolExecutionStatus.APPROVED
    ]


def _approval_of(call: ToolCall, packet: CognitionPacket, spec: ToolSpec) -> Approval | None:
    digest, at = call_digest(call, spec), now()
    for approval in reversed(packet.governance.approvals):
        is_this_call = approval.call_id == call.call_id and approval.digest == digest
        expired = approval.expires_at is None or at > approval.expires_at
        if is_this_call and approval.outcome in _APPROVING_OUTCOMES and not expired:
            return approval
    return None
