"""What `run_turn` does with attachments, invalid inputs, deleted sessions and concurrent turns."""

import asyncio
import base64

import pytest
from support.pictures import png, shown, told
from support.turn_places import Place

from packetgate.connectors.turn import Continue, Finished, Reply, Say, UserInput
from packetgate.state.errors import InputError, RequestError, SessionError
from packetgate.tools.attached.parts import message_part


async def test_attachments_reach_the_model_and_are_stored_outside_the_session(place: Place) -> None:
    cat = png(shade=3)
    place.model.script("It is grey.")
    async with place.session() as talk:
        packet = await talk.answer(Say("Hello", files=(message_part("cat.png", cat), message_part("a.txt", b"Ask."))))
        history = [str(state.values) async for state in talk.sessions.history(talk.name)]
    assert shown(place.model) == [cat]
    assert "Ask." in told(place.model)
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
