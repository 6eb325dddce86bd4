"""The packets of changes and of calls with a question, in the sessions of LangGraph's graph.

A call that waits for an answer elsewhere is a separate thread, whose turn continues when the answer is recorded.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from langgraph.store.base import BaseStore

from packetgate.connectors.recorded_answers import RecordedAnswers
from packetgate.connectors.sessions import Sessions
from packetgate.deciders.choosing import reflex_deciders
from packetgate.gate.proposal import Proposal
from packetgate.graph.building import LAST_STAGE, build_graph
from packetgate.graph.journal import DatabaseJournal
from packetgate.graph.leases import open_leases
from packetgate.graph.settings import Settings
from packetgate.graph.storage import open_checkpointer
from packetgate.state.channels import PROXY
from packetgate.state.packet import CognitionPacket
from packetgate.toolsets.servers.hub import McpHub


@asynccontextmanager
async def open_stored_calls(
    settings: Settings, hub: McpHub, journal: DatabaseJournal, store: BaseStore, patience_s: float
) -> AsyncIterator["StoredCalls"]:
    """Open the sessions, and run answers that other processes record.

    Raises:
        ConfigError: the database cannot be used.
    """
    async with open_checkpointer(settings, patience_s) as checkpointer, open_leases(settings) as leases:
        graph = build_graph(reflex_deciders(), hub, settings.usage_days, journal)
        sessions = Sessions(graph.compile(checkpointer=checkpointer, store=store), leases)
        answers = RecordedAnswers(sessions, journal, leases, PROXY)
        async with answers.run_in_background():
            yield StoredCalls(sessions, answers)


class StoredCalls:
    """The sessions of calls."""

    def __init__(self, sessions: Sessions, answers: RecordedAnswers) -> None:
        self._sessions, self.answers = sessions, answers

    async def save(self, packet: CognitionPacket) -> None:
        """Store the packet of an ended call."""
        config = self._sessions.config(packet.header.session_id)
        await self._sessions.graph.aupdate_state(config, _sections(packet), as_node=LAST_STAGE)

    async def park(self, packet: CognitionPacket) -> None:
        """Store a call that waits for an answer, as a turn with an open question."""
        session, settings = packet.header.session_id, packet.governance.settings
        graph, config = self._sessions.graph, self._sessions.config(session)
        await graph.aupdate_state(config, _sections(packet), as_node="review_selection")
        await graph.ainvoke(None, config, context=settings)
        await self.answers.note_end(session, (await self._sessions.state(session)).question, settings)

    async def current(self, proposal: Proposal) -> Proposal:
        """Return a parked proposal with the current state of its calls."""
        state = await self._sessions.state(proposal.facts.header.session_id)
        return proposal.with_calls(state.packet.routing.all_calls)


def _sections(packet: CognitionPacket) -> dict[str, Any]:
    return {name: getattr(packet, name) for name in type(packet).model_fields if name != "messages"}
