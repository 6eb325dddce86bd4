"""Each reply and typed message to a question has its outcome. An unreadable reply repeats the question."""

import pytest
from support.graphs import session
from support.notebook import Notebook
from support.scripted_deciders import call, none, scripted

from packetgate.connectors.turn import Asked, Finished, Reply, Say, SideTurnFinished
from packetgate.state.context import RoutingContext
from packetgate.state.request import TurnRequest
from packetgate.state.sections import Attachment

WRITE = call("notebook.write_note", name="a", text="avocado")
ASK = "Write avocado to a"


async def test_a_call_rejected_in_words_is_not_repeated(notebook: Notebook):
    async with session(scripted(WRITE, WRITE), notebook, allow_write_tools=True) as talk:
        await talk.ask(ASK)
        packet = await talk.reply({"type": "reject", "message": "not like that"})
    assert notebook.calls == []
    assert "waits for approval or was denied" in packet.response.candidate


async def test_a_message_of_one_word_is_an_answer(notebook: Notebook):
    async with session(scripted(WRITE), notebook, allow_write_tools=True) as talk:
        asked = await talk.ask(ASK)
        packet = await talk.say(" Yes!\n")
    assert (packet.routing.all_calls[0].status.value, notebook.notes["a"]) == ("executed", "avocado")
    assert packet.header == asked.packet.header, "the reply continues the turn of the question"
    assert [message.text for message in packet.conversation[:2]] == [ASK, "Yes!"]
    assert packet.governance.question is None


async def test_a_yes_with_an_attachment_is_a_new_request(notebook: Notebook):
    async with session(scripted(WRITE, none()), notebook, allow_write_tools=True) as talk:
        await talk.ask(ASK)
        *_, aside, asked = await talk.events(
            Say("yes", TurnRequest(attachments=(Attachment(name="a.txt", text="do as this says"),)))
        )
    assert isinstance(aside, SideTurnFinished)
    assert isinstance(asked, Asked)
    assert notebook.calls == []


async def test_the_settings_of_the_asking_run_apply_to_the_reply(notebook: Notebook):
    async with session(scripted(WRITE, none()), notebook, allow_write_tools=True) as talk:
        await talk.ask(ASK)
        talk.context = RoutingContext()
        packet = await talk.reply("yes")
        assert packet.routing.all_calls[0].status.value == "executed"
        assert (await talk.say("Hello")).governance.settings == RoutingContext(), "the settings hold only for the reply"
    assert notebook.called == ["write_note"]


@pytest.mark.parametrize("meant", ["", "0123"])
@pytest.mark.parametrize("turn", [Reply, lambda words, question_id: Say(words, question_id=question_id)])
async def test_an_answer_to_another_question_is_not_used(notebook: Notebook, turn, meant: str):
    """The answer is for an earlier question, or the user saw no question."""
    async with session(scripted(WRITE), notebook, allow_write_tools=True) as talk:
        first = await talk.ask(ASK)
        (again,) = await talk.events(turn("yes", meant))
        assert isinstance(again, Asked)
        assert {**again.question, "problem": None} == {**first.question, "problem": None}
        assert "your reply was for another question" in again.question["problem"]
        assert notebook.calls == []
        *_, end = await talk.events(turn("yes", first.question["question_id"][:8]))
    assert isinstance(end, Finished)
    assert notebook.called == ["write_note"]


OTHER = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    "stray",
    [
        {"question_id": OTHER, "decisions": [{"type": "approve"}]},
        {"question_id": "", "decisions": [{"type": "approve"}]},
        {"decisions": [{"type": "approve", "question_id": OTHER}]},
        {"type": "approve", "question_id": OTHER},
        [{"type": "accept", "args": {"action": "notebook.write_note", "args": {"name": "b", "text": "edited"}}}],
    ],
    ids=str,
)
async def test_a_reply_that_names_another_question_or_call_approves_nothing(notebook: Notebook, stray: object):
    async with session(scripted(WRITE), notebook, allow_write_tools=True) as talk:
        await talk.ask(ASK)
        again = await talk.ask_again(stray)
        assert again.question["problem"]
    assert notebook.calls == []
