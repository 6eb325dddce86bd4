"""Decide whether a request needs a tool, without a language model."""

import asyncio
from datetime import datetime
from functools import partial

from packetgate.deciders.intent import intent_decision
from packetgate.deciders.protocols import IntentDecision
from packetgate.reflex.follow_ups import read_request
from packetgate.reflex.reading import ONLY_UNDO, steps_in, undo_in_words
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket
from packetgate.state.sections import Access
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.toolbox import Toolbox
from packetgate.tools.text.reading import access_of, parts_in, talk_in


async def detect_by_reflex(packet: CognitionPacket, toolbox: Toolbox, context: RoutingContext) -> IntentDecision:
    """Return whether the next step needs a tool. No step follows a failed step."""
    if packet.tool_routing is None and undo_in_words(packet.content.original_prompt):
        return intent_decision(True, packet.content.original_prompt, Access.WRITE, ONLY_UNDO)
    catalogue = toolbox.last_catalogue  # later passes start no server again
    if packet.context.result_ledger and packet.tool_routing is None:
        catalogue = await toolbox.catalogue()
    request = (await asyncio.to_thread(read_request, packet, catalogue)).text
    steps, routing = steps_in(request), packet.tool_routing
    taken = routing.step + 1 if routing else 0
    needs_none = partial(intent_decision, False, request, Access.READ)
    if not steps:
        return needs_none("the request only says what not to do")
    if taken >= len(steps):
        return needs_none("every step of the request is done")
    if routing and any(call.status is not ToolExecutionStatus.EXECUTED for call in routing.step_calls):
        return needs_none("the last step did not succeed, so the next steps are skipped")
    step = steps[taken]
    if taken:
        return intent_decision(True, step, access_of(step), f"step {taken + 1} of {len(steps)} is still open")
    if talk := talk_in(step):
        if talk in {"help", "about"}:
            await toolbox.catalogue()  # the answer names tools
        return needs_none("small talk")
    now = packet.header.local_time
    needs_tool, why = await asyncio.to_thread(_needs_tool, step, await toolbox.catalogue(), now)
    return intent_decision(needs_tool, request, access_of(step), why)


def _needs_tool(step: str, catalogue: Catalogue, now: datetime) -> tuple[bool, str]:
    from packetgate.reflex.fit import (  # numpy is slow to load
        MIN_TOOL_PROBABILITY,
        best_fits,
        probability_of_any,
    )

    if not catalogue:
        return False, "no tools are connected"
    fits_of_parts = [fits for part in parts_in(step) if (fits := best_fits(part, catalogue, now))]
    if not fits_of_parts:
        return False, "no tool resembles the request"
    fits = max(fits_of_parts, key=probability_of_any)
    likely, best = probability_of_any(fits), fits[0]
    if likely < MIN_TOOL_PROBABILITY:
        return False, f"the nearest tool, {best.spec.name}, matches the request with a probability of only {likely:.2f}"
    return True, best.reason
