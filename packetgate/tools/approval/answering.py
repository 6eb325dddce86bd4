"""Taking the user's word on a question, once, wherever it was put."""

import asyncio
from dataclasses import dataclass
from typing import Any

from packetgate.state.errors import RequestError
from packetgate.state.packet import CognitionPacket, PacketUpdate
from packetgate.state.sections import Question
from packetgate.tools.approval.decisions import apply_reply, changed_since
from packetgate.tools.approval.remembering import grants_of
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.execution.grants import Grant, Grants
from packetgate.tools.execution.journal import Journal

CHANGED = "the tool, its server or the call is not what it was when you were asked"
NAMING_DIGITS = 8
"""So many digits of its id name a question."""
TAKEN = "an answer to this was taken already, and an answer counts once"


@dataclass(frozen=True)
class Decision:
    """What a reply to a question would change."""

    update: PacketUpdate
    grants: list[Grant]
    """What is to be remembered of it."""
    changed: tuple[str, ...]
    """The approved tools that are not what the user was asked about."""


async def decision_of(reply: Any, question: Question, packet: CognitionPacket, catalogue: Catalogue) -> Decision:
    """Return what a reply would change.

    Raises:
        RequestError: the reply names another question or call, cannot be read, an edited call is not valid, or the
            question did not offer that.
    """
    check_names(reply, question, packet)
    update = await asyncio.to_thread(apply_reply, packet, reply, catalogue)
    grants = grants_of(update, question, packet, catalogue)
    changed = {call.tool_name for call in changed_since(question, packet, update, catalogue)}
    return Decision(update, grants, tuple(sorted(changed)))


def check_names(reply: Any, question: Question, packet: CognitionPacket) -> None:
    """Raise RequestError if a reply names another question, or approves another call."""
    decisions = reply.get("decisions") if isinstance(reply, dict) else reply
    decisions = [one for one in decisions if isinstance(one, dict)] if isinstance(decisions, list) else []
    for one in (reply, *decisions):
        named = one.get("question_id") if isinstance(one, dict) else None
        is_this = len(str(named)) >= NAMING_DIGITS and question.question_id.startswith(str(named))
        if named is not None and not is_this:
            raise RequestError(
                f"this replies to question {named}, and question {question.question_id} waits: reply to it"
            )
    waiting = [call for call in packet.routing.calls if call.status.awaits_user]
    for one, call in zip(decisions, waiting, strict=False):
        shown = one.get("args") if one.get("type") in ("accept", "approve") else None
        if isinstance(shown, dict) and (shown.get("action"), shown.get("args")) != (call.tool_name, call.params):
            raise RequestError(f"this approves another call than the one that waits, which is {call.tool_name}")


async def taken(decision: Decision, question: Question, packet: CognitionPacket, journal: Journal) -> bool:
    """Return whether this is the one answer that counts; then what is to be remembered of it is."""
    if not await journal.claim(question.question_id):
        return False
    for grant in decision.grants:
        await Grants(journal).give(grant, packet)
    return True
