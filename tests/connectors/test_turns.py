"""`run_turn` with attachments, invalid inputs, deleted sessions, and concurrent and stopped turns."""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.clock_server import Clock
from support.mcp_servers import until
from support.pictures import last_text, png, shown
from support.prompts import call
from support.scripted_openai import ScriptedOpenAI

from packetgate.connectors.opening import open_sessions
from packetgate.connectors.sessions import Sessions
from packetgate.connectors.turn import Asked, Continue, Finished, Reply, Say, TurnEvent, UserInput, run_turn
from packetgate.graph.settings import Settings
from packetgate.state.context import RoutingContext
from packetgate.state.errors import InputError, RequestError, SessionError
from packetgate.state.events import StageStarted
from packetgate.state.packet import CognitionPacket
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.attached.parts import message_part


@dataclass(frozen=True)
class Place:
    """The parts that a turn needs."""

    settings: Settings
    model: ScriptedOpenAI
    clock: Clock
    root: Path

    @asynccontextmanager
    async def session(self, **context: Any) -> "AsyncIterator[Conversation]":
        """Open a conversation; `context` are fields of `RoutingContext`."""
        async with open_sessions(self.settings) as sessions:
            yield Conversation(sessions, "session", RoutingContext(**context))


@dataclass(frozen=True)
class Conversation:
    """A session, and turns on it."""

    sessions: Sessions
    name: str
    context: RoutingContext

    async def events(self, turn: UserInput) -> list[TurnEvent]:
        """Run a turn, and return its events."""
        async with aclosing(run_turn(self.sessions, turn, self.name, self.context)) as events:
            return [event async for event in events]

    async def answer(self, turn: UserInput) -> CognitionPacket:
        """Run a turn to its answer."""
        last = (await self.events(turn))[-1]
        assert isinstance(last, Finished), last
        return last.packet

    async def question(self, turn: UserInput) -> dict[str, Any]:
        """Run a turn to its question."""
        last = (await self.events(turn))[-1]
        assert isinstance(last, Asked), last
        return last.question


@pytest.fixture
def place(scripted_openai: ScriptedOpenAI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A folder with a clock server, and a scripted model, for turns in this process."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("OPENAI_BASE_URL", scripted_openai.base_url)
    for role in ("LITE", "PRIME"):
        monkeypatch.setenv(f"PACKETGATE_{role}_ENABLE_THINKING", "false")  # so that answers arrive in chunks
    (root := tmp_path / "root").mkdir()
    clock = Clock(tmp_path)
    config = clock.configure(tmp_path / "mcp.json")
    settings = Settings(
        lite="openai:scripted", prime="openai:scripted", mcp_config=config, root=root, home=tmp_path / "home"
    )
    clock.begin()
    return Place(settings, scripted_openai, clock, root)


async def test_attachments_reach_the_model_and_are_stored_outside_the_session(place: Place) -> None:
    cat = png(shade=3)
    place.model.script("It is grey.")
    async with place.session() as talk:
        packet = await talk.answer(Say("Hello", files=(message_part("cat.png", cat), message_part("a.txt", b"Ask."))))
        history = [str(state.values) async for state in talk.sessions.history(talk.name)]
    assert shown(place.model) == [cat]
    assert "Ask." in last_text(place.model)
    assert [(one.name, one.is_picture) for one in packet.content.attachments] == [("cat.png", True), ("a.txt", False)]
    assert packet.messages[0].content == "Hello"
    encoded = base64.b64encode(cat).decode()
    assert len(history) > 2
    assert not [state for state in history if encoded in state]


async def test_an_unusable_attachment_is_refused_before_anything_runs(place: Place) -> None:
    picture = {"type": "image", "url": "http://127.0.0.1:1/cat.png"}
    async with place.session() as talk:
        with pytest.raises(RequestError, match="is not fetched"):
            await talk.events(Say("Hello", files=(picture,)))
        assert (await talk.sessions.state(talk.name)).packet.content.original_prompt == ""


@pytest.mark.parametrize(
    ("turn", "error", "says"),
    [
        (Say(" \n"), RequestError, "the request is empty"),
        (Reply("yes"), SessionError, "question"),
        (Continue(), SessionError, "turn"),
    ],
)
async def test_invalid_inputs_are_refused(place: Place, turn: UserInput, error: type[InputError], says: str) -> None:
    place.model.script("Hello to you.")
    async with place.session() as talk:
        before = await talk.answer(Say("Hello"))
        with pytest.raises(error, match=says):
            await talk.events(turn)
        assert (await talk.sessions.state(talk.name)).packet == before


async def test_a_deleted_session_starts_empty(place: Place) -> None:
    place.model.script("Hello to you.", "Hello once more.")
    async with place.session() as talk:
        await talk.answer(Say("Hello"))
        await talk.sessions.forget(talk.name)
        await talk.sessions.forget(talk.name)
        assert (await talk.sessions.state(talk.name)).packet.messages == []
        packet = await talk.answer(Say("Hello"))
    assert (len(packet.messages), packet.header.parent_packet_id) == (2, None)


async def test_concurrent_turns_run_one_after_the_other(place: Place) -> None:
    place.model.script("One.", "Two.")
    async with place.session() as talk:
        both = await asyncio.gather(talk.events(Say("Hello")), talk.events(Say("Thanks")))
    first, second = (events[-1] for events in both)
    assert isinstance(first, Finished)
    assert isinstance(second, Finished)
    assert [first.packet.response.candidate, second.packet.response.candidate] == ["One.", "Two."]
    assert second.packet.header.parent_packet_id == first.packet.header.packet_id
    assert len(second.packet.messages) == 4


WAIT = call("clock.await_stroke", hour="nine")
ASK = Say('Wait until the clock strikes "nine"')


async def stopped(place: Place, talk: Conversation) -> None:
    """Run a turn up to its slow call, and cancel it."""
    place.model.script(WAIT)
    running = asyncio.create_task(talk.events(ASK))
    await until(lambda: place.clock.begun == ["await_stroke nine"])
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_session_with_a_stopped_turn_can_be_deleted(place: Place) -> None:
    async with place.session() as talk:
        await stopped(place, talk)
        await talk.sessions.forget(talk.name)
        await until(lambda: place.clock.stopped == place.clock.begun)
        state = await talk.sessions.state(talk.name)
        assert (state.packet.messages, state.is_unfinished) == ([], False)


async def test_closing_the_stream_stops_the_turn(place: Place) -> None:
    place.model.script(WAIT)
    async with place.session() as talk:
        async with aclosing(run_turn(talk.sessions, ASK, talk.name, talk.context)) as events:
            async for event in events:
                if isinstance(event, StageStarted) and event.stage == "execute_tool":
                    break
        place.model.script("Hello to you.")
        assert (await talk.answer(Say("Hello"))).response.candidate == "Hello to you."
        assert place.clock.stopped == place.clock.begun


async def test_a_waiting_turn_can_be_cancelled(place: Place) -> None:
    place.model.script(WAIT)
    async with place.session() as talk:
        running = asyncio.create_task(talk.events(ASK))
        await until(lambda: bool(place.clock.begun))
        waiting = asyncio.create_task(talk.events(Say("Hello")))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        place.clock.strike()
        place.model.script("It struck nine.")
        last = (await running)[-1]
    assert isinstance(last, Finished)
    assert last.packet.response.candidate == "It struck nine."


async def test_a_write_cancelled_during_the_call_stays_unfinished(place: Place) -> None:
    """The outcome of the write is unknown. The session reports an unfinished turn, and runs nothing by itself."""
    async with place.session(allow_write_tools=True) as talk:
        place.model.script(call("clock.set_alarm", hour="nine"))
        await talk.question(Say('Set the alarm of the clock to "nine"'))
        running = asyncio.create_task(talk.events(Reply("yes")))
        await until(lambda: place.clock.begun == ["set_alarm nine"])
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await until(lambda: place.clock.stopped == place.clock.begun)
        state = await talk.sessions.state(talk.name)
    assert state.is_unfinished
    assert state.packet.routing.execution_status is ToolExecutionStatus.APPROVED
    assert place.clock.begun == ["set_alarm nine"]
