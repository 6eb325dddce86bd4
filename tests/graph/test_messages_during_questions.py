"""A message during an open question is a reply, a correction, a new request, or none of these."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.graphs import session
from support.notebook import Notebook
from support.scripted_deciders import ScriptedResponder, ScriptedReviewer, approving, call, none, scripted

from packetgate.connectors.opening import open_sessions
from packetgate.connectors.sessions import Sessions
from packetgate.connectors.terminal.chat import COMMANDS
from packetgate.connectors.turn import Asked, Finished, Reply, Say, SideTurnFinished, run_turn
from packetgate.deciders.commands import is_undo
from packetgate.graph.settings import Settings
from packetgate.state.channels import SLASH_COMMANDS
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket
from packetgate.state.request import TurnRequest

WRITES = RoutingContext(allow_write_tools=True)
WRITE, READ, TEXT = 'Write "hello" to a.txt', "Read the file", "Write to a.txt"


@pytest.fixture
async def sessions(tmp_path: Path) -> AsyncIterator[Sessions]:
    (root := tmp_path / "root").mkdir()
    (root / "plan.txt").write_text("The gate opens at seven.")
    async with open_sessions(Settings(home=tmp_path / "home", root=root)) as opened:
        yield opened


def called(packet: CognitionPacket) -> list[tuple[str, object, str]]:
    calls = packet.tool_routing.all_calls if packet.tool_routing else ()
    return [(one.tool_name, one.params.get("path"), one.status.value) for one in calls]


async def outcome_of_message(sessions: Sessions, request: str, words: str, *, as_message: bool) -> list[object]:
    """Send a request that causes a question, send a message, and return the outcome."""
    asked = [event async for event in run_turn(sessions, Say(request), "s", WRITES)][-1]
    assert isinstance(asked, Asked)
    question = str(asked.question["question_id"])
    turn = Say(words, question_id=question) if as_message else Reply(words, question)
    return [event async for event in run_turn(sessions, turn, "s", WRITES)]


@pytest.mark.parametrize("as_message", [False, True], ids=["reply", "message"])
@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (WRITE, "never mind, read plan.txt"),
        ("Copy plan.txt", "Count the words in plan.txt"),
        ("Delete plan.txt", "What does plan.txt say?"),
    ],
)
async def test_a_new_request_runs_and_the_question_stays_open(
    sessions: Sessions, request_: str, words: str, *, as_message: bool
) -> None:
    *_, aside, asked = await outcome_of_message(sessions, request_, words, as_message=as_message)
    assert isinstance(aside, SideTurnFinished)
    assert [status for _, _, status in called(aside.packet)] == ["executed"]
    assert isinstance(asked, Asked)
    assert asked.question["problem"] == "Waiting for your decision; not run."
    assert asked.packet.content.original_prompt == request_


async def test_a_question_is_repeated_once(sessions: Sessions) -> None:
    """The question is repeated after another request. Later, it is shown again only before it is answered."""
    asked = (await outcome_of_message(sessions, WRITE, "Read plan.txt", as_message=False))[-1]
    assert isinstance(asked, Asked)
    shown = str(asked.question["question_id"])
    assert not asked.is_known
    for request in ("Count the words in plan.txt", "Read plan.txt"):
        *_, aside, asked = [event async for event in run_turn(sessions, Say(request, question_id=shown), "s", WRITES)]
        assert isinstance(aside, SideTurnFinished)
        assert isinstance(asked, Asked)
        assert asked.is_known
    (again,) = [event async for event in run_turn(sessions, Say("yes", question_id=shown), "s", WRITES)]
    assert isinstance(again, Asked)
    assert (again.is_known, again.question["question_id"]) == (False, asked.question["question_id"])
    done = [event async for event in run_turn(sessions, Reply("yes", again.question["question_id"]), "s", WRITES)][-1]
    assert isinstance(done, Finished)
    assert called(done.packet) == [("ai.write", "a.txt", "executed")]


async def test_a_question_about_a_read_lapses_with_the_next_request(sessions: Sessions) -> None:
    done = (await outcome_of_message(sessions, READ, "Count the words in plan.txt", as_message=False))[-1]
    assert isinstance(done, Finished)
    assert called(done.packet) == [("ai.count", "plan.txt", "executed")]
    assert "was not answered" in done.packet.response.candidate


@pytest.mark.parametrize(
    ("request_", "words", "problem"),
    [
        *[(WRITE, words, "ai.write: `Write text") for words in ("what does it do?", "yes?")],
        *[(WRITE, words, "not a clear answer") for words in ("hmm, not sure", "go ahead and also read plan.txt")],
        *[(WRITE, words, "not a clear answer") for words in ("yes if plan.txt is empty", "/etc/hosts", "b.txt", "thx")],
        *[(READ, words, "not a valid value") for words in ("wait", "plan.txt or a.txt")],
        *[(request, "/help", "A command calls exactly its tool") for request in (WRITE, READ)],
        (READ, "why do you need that?", "ai.read still waits for `path`"),
        (TEXT, "/writes on", "Unknown command"),
    ],
)
async def test_an_unclear_message_leaves_the_question_open(
    sessions: Sessions, request_: str, words: str, problem: str
) -> None:
    asked = (await outcome_of_message(sessions, request_, words, as_message=False))[-1]
    assert isinstance(asked, Asked)
    assert problem in asked.question["problem"]
    assert not [one for one in called(asked.packet) if one[2] == "executed"]
    if request_ == WRITE:
        assert called(asked.packet) == [("ai.write", "a.txt", "awaiting_approval")]


@pytest.mark.parametrize(
    ("words", "path", "content"),
    [
        *[(words, "b.txt", "hello") for words in ("yes but to b.txt", "path=b.txt", "call it b.txt", "no, b.txt")],
        *[(words, "a.txt", "goodbye") for words in ('no, write "goodbye"', 'make it "goodbye"')],
    ],
)
async def test_a_correction_is_asked_about_again(sessions: Sessions, words: str, path: str, content: str) -> None:
    asked = (await outcome_of_message(sessions, WRITE, words, as_message=False))[-1]
    assert isinstance(asked, Asked)
    (call,) = [one for one in asked.packet.routing.calls if one.status.awaits_user]
    assert (call.tool_name, call.params) == ("ai.write", {"path": path, "content": content})


async def test_a_correction_that_fits_two_arguments_is_asked_about(sessions: Sessions) -> None:
    request = "Replace seven with eight in plan.txt"
    asked = (await outcome_of_message(sessions, request, 'no, "nine"', as_message=False))[-1]
    assert isinstance(asked, Asked)
    assert "`old_text` or `new_text`" in asked.question.get("problem", ""), asked.packet.reasoning
    assert asked.packet.routing.calls[0].params["new_text"] == "eight"


@pytest.mark.parametrize("words", ["never mind", "stop", "no thanks"])
async def test_a_refusal_is_no_value(sessions: Sessions, words: str) -> None:
    done = (await outcome_of_message(sessions, WRITE, words, as_message=False))[-1]
    assert isinstance(done, Finished)
    assert called(done.packet) == [("ai.write", "a.txt", "user_denied")]


async def test_text_for_an_earlier_question_runs_as_a_new_request(sessions: Sessions) -> None:
    first = [event async for event in run_turn(sessions, Say(WRITE), "s", WRITES)][-1]
    new = Say("Delete plan.txt", TurnRequest(is_new=True))
    second = [event async for event in run_turn(sessions, new, "s", WRITES)][-1]
    assert isinstance(first, Asked)
    assert isinstance(second, Asked)
    earlier = str(first.question["question_id"])
    *_, aside, again = [event async for event in run_turn(sessions, Reply("Read plan.txt", earlier), "s", WRITES)]
    assert isinstance(aside, SideTurnFinished)
    assert called(aside.packet) == [("ai.read", "plan.txt", "executed")]
    assert isinstance(again, Asked)
    (only,) = [event async for event in run_turn(sessions, Reply("yes", earlier), "s", WRITES)]
    assert isinstance(only, Asked)
    assert called(again.packet) == called(only.packet) == [("ai.delete", "plan.txt", "awaiting_approval")]


def test_slash_commands_of_the_chat_are_no_answer_in_any_connector() -> None:
    assert COMMANDS.keys() - {"/undo"} <= SLASH_COMMANDS
    assert is_undo("/undo"), "the command is a request, which leaves the question open"


async def test_a_remark_without_a_new_call_leaves_the_call_pending(notebook: Notebook) -> None:
    write = call("notebook.write_note", name="a", text="hello")
    answering = scripted(write, none(), responder=ScriptedResponder("Ha."), reviewer=ScriptedReviewer(approving(0.9)))
    async with session(answering, notebook, allow_write_tools=True) as opened:
        await opened.ask("Write hello to note a")
        *_, aside, asked = await opened.events(Reply("my dog is called Rex"))
        assert isinstance(aside, SideTurnFinished)
        assert aside.packet.response.candidate == "Ha."
        assert isinstance(asked, Asked)
        assert asked.question["problem"] == "Waiting for your decision; not run."
        assert notebook.calls == []
        done = await opened.reply("yes")
    assert notebook.calls == [("write_note", {"name": "a", "text": "hello", "mode": "replace"})]
    assert done.content.clarifications == ()


async def test_a_new_call_after_a_remark_replaces_the_pending_call(notebook: Notebook) -> None:
    first, second = (call("notebook.write_note", name="a", text=text) for text in ("hello", "goodbye"))
    async with session(scripted(first, second, none()), notebook, allow_write_tools=True) as opened:
        await opened.ask("Write hello to note a")
        asked = await opened.ask_again("make it sound sadder")
        assert asked.packet.parked_turns == ()
        await opened.reply("yes")
    assert notebook.calls == [("write_note", {"name": "a", "text": "goodbye", "mode": "replace"})]
