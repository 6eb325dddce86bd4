"""A clarifying question: the answer counts as the user's words, and selection continues."""

import pytest
from support.graphs import session
from support.notebook import Notebook
from support.origins import words
from support.scripted_deciders import call, clarify, scripted

from packetgate.state.transitions import ToolExecutionStatus

WHICH = clarify("Which note?")
READ_B = call("notebook.read_note", name="b")


@pytest.mark.parametrize(
    "reply",
    [
        *("b", " b \n", [{"type": "response", "args": "b"}]),
        {"decisions": [{"type": "respond", "message": "b"}]},
    ],
)
async def test_the_answer_becomes_the_users_own_words(notebook: Notebook, reply: object):
    deciders = scripted(WHICH, READ_B)
    async with session(deciders, notebook) as talk:
        asked = await talk.ask("Read a note")
        packet = await talk.reply(reply)
        steps = await talk.steps()
    assert asked.question["question"] == "Which note?"
    assert asked.question["kind"] == "question"
    (request,) = asked.question["action_requests"]
    assert request["args"] == request["arguments"] == {"answer": ""}
    assert asked.question["review_configs"] == [
        {"action_name": "A question for you", "allowed_decisions": ["respond", "edit", "reject"]}
    ]
    assert packet.content.clarifications == ("b",)
    assert words(packet.routing.calls[0].provenance) == {"name": "user"}
    assert notebook.calls == [("read_note", {"name": "b"})]
    assert steps[3:6] == ["select_tool", "ask_user", "select_tool"]
    assert packet.routing.reinjection_count == 1


async def test_an_unusable_answer_repeats_the_question(notebook: Notebook):
    async with session(scripted(WHICH, READ_B), notebook) as talk:
        await talk.ask("Read a note")
        again = await talk.ask_again({"decisions": [{"type": "approve"}]})
        assert "needs an answer in words" in again.question["problem"]
        assert again.question["question"] == "Which note?"
        await talk.reply("b")
    assert notebook.called == ["read_note"]


async def test_a_turn_asks_at_most_two_questions(notebook: Notebook):
    async with session(scripted(WHICH, clarify("Sure?"), clarify("Really?")), notebook) as talk:
        await talk.ask("Read a note")
        second = await talk.ask_again("b")
        assert second.question["question"] == "Sure?"
        packet = await talk.reply("yes, b")
    assert packet.content.clarifications == ("b", "yes, b")
    assert packet.routing.execution_status is ToolExecutionStatus.SKIPPED
    assert "Selection repeated clarify" in packet.response.candidate
    assert notebook.calls == []
