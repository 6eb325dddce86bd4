"""Needs a tool or not: whether any of those there are is likely to serve."""

import asyncio
from datetime import datetime

from packetgate.deciders.protocols import IntentDecision
from packetgate.deciders.reflex.following import request_of
from packetgate.deciders.reflex.reading import access_of, is_small_talk, parts_in, steps_in
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket
from packetgate.state.sections import Access
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.toolbox import Toolbox


async def detect_by_reflex(packet: CognitionPacket, toolbox: Toolbox, context: RoutingContext) -> IntentDecision:
    """Judge the first step not yet taken; steps follow one another only after success.

    A step needs a tool if some tool is likely to serve it.
    """
    request = request_of(packet)
    steps, routing = steps_in(request), packet.tool_routing
    taken = routing.step + 1 if routing else 0
    if not steps:
        return _decided(False, request, Access.READ, "it only says what is not to be done")
    if taken >= len(steps):
        return _decided(False, request, Access.READ, "every step of the request was taken")
    if routing and any(call.status is not ToolExecutionStatus.EXECUTED for call in routing.step_calls):
        return _decided(False, request, Access.READ, "the last step did not succeed, so none follows it")
    step = steps[taken]
    if taken:
        return _decided(True, step, access_of(step), f"step {taken + 1} of {len(steps)} is still open")
    if is_small_talk(step):
        return _decided(False, request, Access.READ, "small talk")
    needs, why = await asyncio.to_thread(_judge, step, await toolbox.catalogue(), packet.header.created_at.astimezone())
    return _decided(needs, request, access_of(step), why)


def _decided(needs: bool, intent: str, access: Access, why: str) -> IntentDecision:
    return IntentDecision(
        needs_tool=needs,
        user_intent=" ".join(intent.split())[:200],
        access=access,
        reasoning=why,
        decided_by="reflex",
    )


def _judge(step: str, catalogue: Catalogue, now: datetime) -> tuple[bool, str]:
    """Return (needs a tool, why): it does where any part of it does."""
    from packetgate.deciders.reflex.fit import ENOUGH, fits_of, needed  # here, because numpy is slow to load

    if not catalogue:
        return False, "no tools are connected"
    found = [fits for part in parts_in(step) if (fits := fits_of(part, catalogue, now))]
    if not found:
        return False, "no tool is near to it"
    fits = max(found, key=needed)
    likely, best = needed(fits), fits[0]
    if likely < ENOUGH:
        return False, f"the nearest tool, {best.spec.name}, serves it with a probability of {likely:.2f} only"
    return True, best.why
