"""Find past packets by id prefix or as the last one, as they were stored."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from support.graphs import Session, session
from support.notebook import Notebook

from packetgate.connectors.sessions import Sessions, SessionState
from packetgate.connectors.trace import find_packet
from packetgate.deciders.choosing import reflex_deciders
from packetgate.graph.journal import open_journal
from packetgate.graph.settings import Settings
from packetgate.graph.storage import open_checkpointer
from packetgate.state.errors import PacketError, SessionError
from packetgate.state.sections import PacketState


@dataclass
class Kept:
    """A conversation and the sessions in which it is found."""

    talk: Session
    sessions: Sessions

    async def find(self, wanted: str, session: str | None = None) -> SessionState:
        """Return a past packet."""
        return await find_packet(self.sessions, wanted, session)


@pytest.fixture
async def kept(tmp_path: Path) -> AsyncIterator[Kept]:
    """A conversation without a model over the notes a to d."""
    settings = Settings(home=tmp_path)
    stored: dict[str, Any] = {"journal": open_journal(settings), "allow_write_tools": True}
    async with (
        open_checkpointer(settings) as checkpointer,
        session(reflex_deciders(), Notebook(), checkpointer=checkpointer, **stored) as talk,
    ):
        yield Kept(talk, Sessions(talk.graph, journal=stored["journal"]))


@pytest.mark.parametrize("length", [8, 12, 32])
async def test_a_packet_is_found_by_prefix(kept: Kept, length: int) -> None:
    packet = await kept.talk.say("Read note name=b")
    await kept.talk.say("Hello")
    found = await kept.find(packet.header.packet_id[:length])
    assert found.packet == packet


async def test_an_earlier_packet_has_no_later_messages(kept: Kept) -> None:
    first = await kept.talk.say("Read note name=b")
    await kept.talk.say("Read note name=c")
    found = await kept.find(first.header.packet_id)
    assert [one.text for one in found.packet.messages if isinstance(one, HumanMessage)] == ["Read note name=b"]


async def test_last_is_of_one_session_or_of_all(kept: Kept) -> None:
    for name in ("work", "home.and.garden"):
        kept.talk.name = name
        await kept.talk.say(f"Hello from {name}")
    asked = [(await kept.find("last", session)).packet.content.original_prompt for session in (None, "work")]
    assert asked == ["Hello from home.and.garden", "Hello from work"]


async def test_a_waiting_turn_is_found_in_its_session_with_its_question(kept: Kept) -> None:
    asked = await kept.talk.ask("Write note name=a text=x")
    packet_id = asked.packet.header.packet_id
    for wanted, name in (("last", "session"), (packet_id[:8], "session"), (packet_id, None)):
        found = await kept.find(wanted, name)
        assert found.packet.status.state is PacketState.AWAITING_USER
        assert found.question == asked.question


async def test_without_turns_nothing_is_found(kept: Kept) -> None:
    with pytest.raises(PacketError):
        await kept.find("last")
    with pytest.raises(PacketError, match="00000000"):
        await kept.find("00000000")
    with pytest.raises(SessionError, match="'none'"):
        await kept.find("last", "none")


@pytest.mark.parametrize("forgotten", [True, False])
async def test_a_packet_of_a_deleted_session_is_not_found(kept: Kept, forgotten: bool) -> None:
    packet = await kept.talk.say("Hello")
    if forgotten:
        await kept.sessions.forget("session")
    else:
        checkpointer = kept.talk.graph.checkpointer
        assert isinstance(checkpointer, BaseCheckpointSaver)
        await checkpointer.adelete_thread("session")
    with pytest.raises(PacketError, match=packet.header.packet_id[:8]):
        await kept.find(packet.header.packet_id)


async def test_history_is_read_page_by_page(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("packetgate.connectors.sessions.PAGE", 3)
    first = await kept.talk.say("Hello")
    for _ in range(3):
        await kept.talk.say("Hello again")
    assert (await kept.find(first.header.packet_id, "session")).packet == first
