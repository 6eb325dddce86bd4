"""Past packets are found by the beginning of their id, or as the last, and told as they then stood."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from support.archives import Kept, keeping
from support.graphs import Session
from support.notebook import Notebook
from support.usage import turn

from packetgate.connectors.trace.finding import is_packet_id
from packetgate.deciders.choosing import reflex_deciders
from packetgate.state.errors import PacketError, SessionError
from packetgate.state.sections import Header, PacketState
from packetgate.tools.usage.store import keep


@pytest.fixture
async def kept(tmp_path: Path) -> AsyncIterator[Kept]:
    """A conversation with reflexes over notes a to d."""
    async with keeping(tmp_path, reflex_deciders(), Notebook(), allow_write_tools=True) as opened:
        yield opened


@pytest.mark.parametrize("length", [8, 12, 32])
async def test_a_packet_is_found_by_the_beginning_of_its_id(kept: Kept, length: int) -> None:
    packet = await kept.talk.say("Read note name=b")
    await kept.talk.say("Hello")
    found = await kept.find(packet.header.packet_id[:length])
    assert found.packet == packet


async def test_an_earlier_packet_does_not_know_what_came_later(kept: Kept) -> None:
    first = await kept.talk.say("Read note name=b")
    await kept.talk.say("Read note name=c")
    found = await kept.find(first.header.packet_id)
    assert [one.text for one in found.packet.messages if isinstance(one, HumanMessage)] == ["Read note name=b"]


async def test_the_last_one_is_that_of_all_sessions_or_of_one(kept: Kept) -> None:
    for name in ("work", "home.and.garden"):
        kept.talk.name = name
        await kept.talk.say(f"Hello from {name}")
    asked = [(await kept.find("last", session)).packet.content.original_prompt for session in (None, "work")]
    assert asked == ["Hello from home.and.garden", "Hello from work"]


async def test_the_last_one_may_wait_for_an_answer(kept: Kept) -> None:
    kept.talk.name = "finished"
    await kept.talk.say("Hello")
    kept.talk.name = "waiting"
    asked = await kept.talk.ask("Write note name=a text=x")
    found = await kept.find("last")
    assert (found.packet.header.packet_id, found.question) == (asked.packet.header.packet_id, asked.question)


async def test_a_turn_that_waits_is_found_in_its_session_with_its_question(kept: Kept) -> None:
    asked = await kept.talk.ask("Write note name=a text=x")
    for wanted in ("last", asked.packet.header.packet_id[:8]):
        found = await kept.find(wanted, "session")
        assert found.packet.status.state is PacketState.AWAITING_USER
        assert found.question == asked.question
    with pytest.raises(PacketError, match="one that still waits, or was never recorded, is found with --session"):
        await kept.find(asked.packet.header.packet_id)


async def test_a_packet_that_is_nowhere_is_told_with_the_latest(kept: Kept) -> None:
    packet = await kept.talk.say("Hello there")
    latest = packet.header.packet_id[:8]
    with pytest.raises(PacketError, match=f"no packet 00000000 is on record; the latest are {latest} \\('Hello there'"):
        await kept.find("00000000")
    with pytest.raises(PacketError, match=f"in session 'session': its latest are {latest}"):
        await kept.find("00000000", "session")
    with pytest.raises(PacketError, match="in session 'other', which has no turn"):
        await kept.find("00000000", "other")


async def test_where_nothing_has_happened_there_is_no_last(kept: Kept) -> None:
    with pytest.raises(PacketError, match="no turn is on record yet"):
        await kept.find("last")
    with pytest.raises(SessionError, match="session 'none' has no turn"):
        await kept.find("last", "none")


async def test_a_packet_of_a_session_that_is_gone_is_told(kept: Kept) -> None:
    packet = await kept.talk.say("Hello")
    checkpointer = kept.talk.graph.checkpointer
    assert isinstance(checkpointer, BaseCheckpointSaver)
    await checkpointer.adelete_thread("session")
    with pytest.raises(PacketError, match="is kept in session 'session', which has no turn"):
        await kept.find(packet.header.packet_id)


async def test_a_forgotten_session_is_found_nowhere(kept: Kept) -> None:
    packet = await kept.talk.say("Hello")
    await kept.archive.sessions.forget("session")
    with pytest.raises(PacketError, match="is on record"):
        await kept.find(packet.header.packet_id)


async def test_a_beginning_that_several_share_is_not_guessed_at(kept: Kept) -> None:
    ids = ["12345678" + "a" * 24, "12345678" + "b" * 24]
    for packet_id in ids:
        await keep(kept.store, turn(packet_id))
    with pytest.raises(PacketError, match=re.escape(f"2 packets begin with 12345678: {', '.join(ids)}; give more")):
        await kept.find("12345678")
    await _rename(kept.talk, ids)
    with pytest.raises(PacketError, match="2 packets begin with 12345678"):
        await kept.find("12345678", "session")
    assert (await kept.find(ids[0], "session")).packet.header.packet_id == ids[0]


async def _rename(talk: Session, ids: list[str]) -> None:
    """Have a turn for each id."""
    for packet_id in ids:
        await talk.say("Hello")
        await talk.graph.aupdate_state(talk.config, {"header": Header(packet_id=packet_id)}, as_node="respond")


async def test_a_long_conversation_is_looked_through_to_its_beginning(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("packetgate.connectors.sessions.PAGE", 3)
    first = await kept.talk.say("Hello")
    for _ in range(3):
        await kept.talk.say("Hello again")
    assert (await kept.find(first.header.packet_id, "session")).packet == first


@pytest.mark.parametrize(
    ("text", "is_id"),
    [("0123abcd", True), ("a" * 32, True), ("0123abc", False), ("a" * 33, False), ("plan.txt", False), ("last", False)],
)
def test_what_counts_as_an_id(text: str, is_id: bool) -> None:
    assert is_packet_id(text) == is_id
