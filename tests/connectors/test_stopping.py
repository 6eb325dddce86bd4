"""Stopping a turn during a slow tool call works alike here."""

import asyncio
from contextlib import aclosing

import pytest
from support.mcp_servers import until
from support.turn_places import Conversation, Place, answering, wanting

from packetgate.connectors.turn import Continue, Finished, Reply, Say, run_turn
from packetgate.state.events import StageStarted
from packetgate.state.transitions import ToolExecutionStatus

WAIT = wanting("clock.await_stroke", hour="nine")
ASK = Say('Wait until the clock strikes "nine"')


async def stopped(place: Place, talk: Conversation) -> None:
    """Run a turn up to its slow call, and cancel it."""
    place.model.script(*WAIT)
    running = asyncio.create_task(talk.events(ASK))
    await until(lambda: place.clock.begun == ["await_stroke nine"])
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_stopped_turn_can_be_continued(place: Place) -> None:
    async with place.session() as talk:
        await stopped(place, talk)
        state = await talk.sessions.state(talk.name)
        assert (state.is_unfinished, state.question) == (True, None)
        place.clock.strike()
        place.model.script(*answering("It struck nine."))
        packet = await talk.answer(Continue())
    assert packet.routing.execution_status is ToolExecutionStatus.EXECUTED
    assert place.clock.begun == ["await_stroke nine"] * 2


async def test_a_session_with_a_stopped_turn_can_be_deleted(place: Place) -> None:
    async with place.session() as talk:
        await stopped(place, talk)
        await talk.sessions.forget(talk.name)
        await until(lambda: place.clock.stopped == place.clock.begun)
        state = await talk.sessions.state(talk.name)
        assert (state.packet.messages, state.is_unfinished) == ([], False)


async def test_closing_the_stream_stops_the_turn(place: Place) -> None:
    place.model.script(*WAIT)
    async with place.session() as talk:
        async with aclosing(run_turn(talk.sessions, ASK, talk.name, talk.context)) as events:
            async for event in events:
                if isinstance(event, StageStarted) and event.stage == "execute_tool":
                    break
        place.model.script("Hello to you.")
        assert (await talk.answer(Say("Hello"))).response.candidate == "Hello to you."
        assert place.clock.stopped == place.clock.begun


async def test_a_waiting_turn_can_be_cancelled(place: Place) -> None:
    place.model.script(*WAIT)
    async with place.session() as talk:
        running = asyncio.create_task(talk.events(ASK))
        await until(lambda: bool(place.clock.begun))
        waiting = asyncio.create_task(talk.events(Say("Hello")))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        place.clock.strike()
        place.model.script(*answering("It struck nine."))
        last = (await running)[-1]
    assert isinstance(last, Finished)
    assert last.packet.response.candidate == "It struck nine."


async def test_a_write_cancelled_during_the_call_stays_unfinished(place: Place) -> None:
    """Its outcome is unknown: the session reports the turn as unfinished, and runs nothing by itself."""
    async with place.session(allow_write_tools=True) as talk:
        place.model.script(*wanting("clock.set_alarm", "write", hour="nine"))
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
