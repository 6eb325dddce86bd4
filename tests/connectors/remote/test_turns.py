"""`run_turn` behaves alike in this process and on a server."""

import asyncio
import base64
from typing import Any

import pytest
from support.pictures import png, shown, told
from support.prompts import selection
from support.scripted_replies import CutOff
from support.turn_places import Place, answering, wanting

from packetgate.connectors.sessions import AnswerPiece
from packetgate.connectors.turn import Continue, Finished, Reply, Say, UserInput
from packetgate.state.errors import InputError, RequestError, SessionError
from packetgate.state.events import StageFinished, StageStarted
from packetgate.state.request import TurnRequest
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.attached.parts import message_part

ANSWER = "The owl sleeps by day, and more than that the notes do not say."
CLARIFY = selection("clarify", question="Which file?")
WRITE = wanting("ai.write", "write", path="plan.txt", content="hello owl")


async def test_an_answer_is_streamed(place: Place) -> None:
    place.model.script(ANSWER)
    async with place.session() as talk:
        events = await talk.events(Say("Hello", TurnRequest(origin="test")))
    pieces = [event.text for event in events if isinstance(event, AnswerPiece)]
    assert len(pieces) > 3
    assert "".join(pieces) == ANSWER
    *_, last = events
    assert isinstance(last, Finished)
    assert last.packet.response.candidate == last.packet.messages[-1].text == ANSWER
    assert last.packet.header.origin == ("server" if place.settings.url else "test")
    kinds = [type(event) for event in events]
    assert kinds.index(AnswerPiece) > kinds.index(StageFinished)
    assert [event.stage for event in events if isinstance(event, StageStarted)] == [
        *("open_packet", "detect_intent", "respond")
    ]


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


async def test_an_aborted_stream_is_not_the_answer(place: Place) -> None:
    place.model.script(CutOff("The owl sl"))
    async with place.session() as talk:
        events = await talk.events(Say("Hello"))
    pieces = [event for event in events if isinstance(event, AnswerPiece)]
    assert "".join(piece.text for piece in pieces) == "The owl "
    last = events[-1]
    assert isinstance(last, Finished)
    assert last.packet.response.candidate.startswith("Hello!")


@pytest.mark.parametrize(
    ("reply", "status", "written"),
    [
        ("yes", ToolExecutionStatus.EXECUTED, "hello owl"),
        ("no", ToolExecutionStatus.USER_DENIED, None),
        (
            {"decisions": [{"type": "edit", "edited_action": {"args": {"path": "plan.txt", "content": "edited"}}}]},
            *(ToolExecutionStatus.EXECUTED, "edited"),
        ),
    ],
    ids=str,
)
async def test_a_write_waits_for_a_reply(
    place: Place, reply: Any, status: ToolExecutionStatus, written: str | None
) -> None:
    file = place.root / "plan.txt"
    file.unlink(missing_ok=True)
    place.model.script(*WRITE)
    async with place.session(allow_write_tools=True) as talk:
        question = await talk.question(Say("Write hello owl to plan.txt"))
        state = await talk.sessions.state(talk.name)
        assert (question["kind"], question["action_requests"][0]["name"]) == ("approval", "ai.write")
        assert (state.question, state.is_unfinished, file.exists()) == (question, False, False)
        place.model.script(*answering("Done."))
        packet = await talk.answer(Reply(reply))
    assert packet.routing.execution_status is status
    assert (file.read_text() if file.exists() else None) == written


async def test_a_question_is_answered_in_words(place: Place) -> None:
    place.model.script(CLARIFY)
    (place.root / "b.txt").write_text("the plan\n")
    async with place.session() as talk:
        question = await talk.question(Say("Read my notes"))
        assert (question["kind"], question["question"]) == ("question", "Which file?")
        place.model.script(*wanting("ai.read", path="b.txt"), *answering("The plan."))
        packet = await talk.answer(Reply("b.txt"))
    assert packet.content.clarifications == ("b.txt",)
    assert packet.routing.all_calls[0].status is ToolExecutionStatus.EXECUTED


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
