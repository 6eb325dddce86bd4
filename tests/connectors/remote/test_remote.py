"""Sessions on a LangGraph server: threads, assistants, and outcomes of runs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph_sdk import get_client
from support.langgraph_server import GRAPH
from support.mcp_servers import until
from support.turn_places import Conversation, Place, answering, wanting

from packetgate.connectors.remote import open_remote, thread_id
from packetgate.connectors.turn import Asked, Finished, Say
from packetgate.state.codes import Code
from packetgate.state.context import RoutingContext
from packetgate.state.errors import ConfigError, RequestError, SessionError
from packetgate.state.packet import TurnInput

pytestmark = pytest.mark.parametrize("place", ["remote"], indirect=True)

SURE = wanting("ai.read", path="notes.txt")
UUID = "2f6b7a52-1d7e-4c0a-9f5e-0c3c7c1d2e4b"


@asynccontextmanager
async def assistant(place: Place, name: str, **context: Any) -> AsyncIterator[str]:
    """Create an assistant on the server, and delete it afterwards."""
    async with get_client(url=place.settings.url, api_key=None) as client:
        made = (await client.assistants.create(GRAPH, context=context, name=name))["assistant_id"]
        try:
            yield made
        finally:
            await client.assistants.delete(made)


@asynccontextmanager
async def talking(place: Place, to: str, **context: Any) -> AsyncIterator[Conversation]:
    """Talk to an assistant."""
    async with open_remote(place.settings.url or "", to) as sessions:
        name = f"session {id(sessions)}"
        await sessions.forget(name)
        yield Conversation(sessions, name, RoutingContext(**context))


@pytest.fixture(autouse=True)
def _notes(place: Place) -> None:
    (place.root / "notes.txt").write_text("the owl sleeps by day\n")


def test_each_session_has_its_own_thread() -> None:
    assert thread_id(UUID) == thread_id(UUID.upper()) == UUID
    assert thread_id("home") == thread_id("home") != thread_id("work")


@pytest.mark.parametrize("by", ["id", "name"])
async def test_only_explicit_settings_override_the_assistant(place: Place, by: str) -> None:
    async with assistant(place, "strict", confidence_threshold=0.99) as made:
        to = made if by == "id" else "strict"
        place.model.script(*SURE)
        async with talking(place, to, max_reinjections=2) as talk:
            assert isinstance((await talk.events(Say("Read notes.txt")))[-1], Asked)
        place.model.script(*SURE, *answering("It sleeps."))
        async with talking(place, to, confidence_threshold=0.5) as talk:
            assert isinstance((await talk.events(Say("Read notes.txt")))[-1], Finished)


async def test_a_missing_assistant_is_an_error(place: Place) -> None:
    with pytest.raises(ConfigError, match="no assistant 'nobody': it has packetgate; set PACKETGATE_ASSISTANT"):
        async with talking(place, "nobody"):
            pass


async def test_an_ambiguous_assistant_name_is_an_error(place: Place) -> None:
    async with assistant(place, "twin"), assistant(place, "twin"):
        with pytest.raises(ConfigError, match="2 assistants are named 'twin': use an id"):
            async with talking(place, "twin"):
                pass


async def test_an_error_of_the_run_keeps_its_class(place: Place) -> None:
    async with place.session() as talk:
        with pytest.raises(RequestError, match="empty"):
            async for _ in talk.sessions.stream(TurnInput(messages=[HumanMessage(" ")]), talk.name, talk.context):
                pass


async def test_a_turn_stopped_by_another_client_is_an_error(place: Place) -> None:
    place.model.script(*wanting("clock.await_stroke", hour="nine"))
    async with place.session() as talk, get_client(url=place.settings.url, api_key=None) as client:
        running = asyncio.create_task(talk.events(Say('Wait until the clock strikes "nine"')))
        await until(lambda: bool(place.clock.begun))
        (run,) = await client.runs.list(thread_id(talk.name))
        await client.runs.cancel(run["thread_id"], run["run_id"], wait=True)
        with pytest.raises(SessionError) as caught:
            await running
    assert caught.value.code == Code.TURN_INTERRUPTED


async def test_a_thread_created_in_studio_can_be_continued(place: Place) -> None:
    """A thread's id is also the name of its session."""
    async with get_client(url=place.settings.url, api_key=None) as client:
        thread = (await client.threads.create())["thread_id"]
        place.model.script("Hello to you.", "Hello once more.")
        await client.runs.wait(thread, GRAPH, input={"messages": [{"role": "user", "content": "Hello"}]})
    async with place.session() as talk:
        packet = await Conversation(talk.sessions, thread, talk.context).answer(Say("Hello"))
    assert [message.text for message in packet.messages] == ["Hello", "Hello to you.", "Hello", "Hello once more."]
