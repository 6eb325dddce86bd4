"""Taking the user's word on a question, once, wherever it was put."""

import asyncio
from dataclasses import dataclass
from typing import Any

from state.packet import CognitionPacket, PacketUpdate
from state.sections import Question
from tools.approval.decisions import apply_reply, changed_since
from tools.approval.remembering import grants_of
from tools.catalogue.catalogue import Catalogue
from tools.execution.grants import Grant, Grants
from tools.execution.journal import Journal

CHANGED = "the tool, its server or the call is not what it was when you were asked"
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
        RequestError: the reply cannot be read, an edited call is not valid, or the question did not offer that.
    """
    update = await asyncio.to_thread(apply_reply, packet, reply, catalogue)
    grants = grants_of(update, question, packet, catalogue)
    changed = {call.tool_name for call in changed_since(question, packet, update, catalogue)}
    return Decision(update, grants, tuple(sorted(changed)))


async def taken(decision: Decision, question: Question, packet: CognitionPacket, journal: Journal) -> bool:
    """Return whether this is the one answer that counts; then what is to be remembered of it is."""
    if not await journal.claim(question.question_id):
        return False
    for grant in decision.grants:
        await Grants(journal).give(grant, packet)
    return True
