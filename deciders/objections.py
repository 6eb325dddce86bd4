"""Objections that a decider hears once a turn; if it insists, the review decides."""

from collections.abc import Sequence

from state.packet import CognitionPacket
from state.routing import Correction, ToolRouting
from tools.catalogue.catalogue import Catalogue
from tools.checks.checking import CheckedCall
from tools.checks.wrong_kind import wrong_kind


def objections_to(
    routing: ToolRouting, calls: Sequence[CheckedCall], packet: CognitionPacket, catalogue: Catalogue
) -> list[Correction]:
    """Return what is to be said against these calls, unless it was said before or is already done."""
    words, most = packet.content.user_words, max(packet.intent.access.risks, key=lambda risk: risk.severity)
    names = [call.tool_name for call in calls]
    made = [call.tool_name for call in routing.past_calls if call.tool_name in catalogue]
    served = {catalogue[name].category for name in names + made}
    found = [wrong_kind(catalogue[name], words, most, catalogue) for name in names]
    open_ = [one for one in found if one and catalogue[one.better_tool].category not in served]
    return [one for one in open_ if one.better_tool not in routing.objections]
