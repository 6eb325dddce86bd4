"""What the calls of a pass need before they run, and on whose word those run that nobody is asked about."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import timedelta

from packetgate.state.base import now
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import ToolCall
from packetgate.state.sections import Approval, ApprovalOutcome
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.execution.grants import Grants
from packetgate.tools.execution.journal import Journal
from packetgate.tools.execution.permission import Need, call_digest, need_of

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
