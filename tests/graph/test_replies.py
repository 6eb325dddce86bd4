"""Each reply has its outcome and status, and an unreadable reply repeats the question."""

import pytest
from support.graphs import session
from support.notebook import Notebook
from support.scripted_deciders import call, none, scripted

from packetgate.state.sections import ApprovalOutcome, PacketState
from packetgate.state.transitions import ToolExecutionStatus

WRITE = call("notebook.write_note", name="a", text="avocado")
ASK = "Write avocado to a"


@pytest.mark.parametrize(
    ("reply", "outcome", "status", "note"),
    [
        ("yes", "approved", "executed", "avocado"),
        ("Yes!", "approved", "executed", "avocado"),
        ("no", "denied", "user_denied", "apples"),
        ("skip", "skipped", "skipped", "apples"),
        ("", "skipped", "skipped", "apples"),
        ({"decisions": [{"type": "approve"}]}, "approved", "executed", "avocado"),
        ({"decisions": [{"type": "reject"}]}, "denied", "user_denied", "apples"),
        ([{"type": "accept"}], "approved", "executed", "avocado"),
        ([{"type": "ignore", "args": None}], "skipped", "skipped", "apples"),
        ({"type": "approve"}, "approved", "executed", "avocado"),
        (
            {
                "decisions": [
                    {
                        "type": "edit",
                        "edited_action": {"name": "notebook.write_note", "args": {"name": "a", "text": "x"}},
                    }
                ]
            },
            *("edited", "executed", "x"),
        ),
        (
            [{"type": "edit", "args": {"action": "notebook.write_note", "args": {"name": "a", "text": "y"}}}],
            *("edited", "executed", "y"),
        ),
        ([{"type": "edit", "args": {"name": "a", "text": "z"}}], "edited", "executed", "z"),
    ],
)
async def test_each_reply_has_its_outcome(notebook: Notebook, reply: object, outcome: str, status: str, note: str):
    async with session(scripted(WRITE), notebook, allow_write_tools=True) as talk:
        await talk.ask(ASK)
        packet = await talk.reply(reply)
    (approval,) = packet.governance.approvals
    (done,) = packet.routing.all_calls
    assert (approval.outcome.value, done.status.value, notebook.notes["a"]) == (outcome, status, note)
    assert (approval.call_id, approval.params) == (done.call_id, done.params)
    assert packet.governance.question is None
    assert packet.governance.audit[0].event == f"call_{outcome}"
    assert packet.status.state is PacketState.COMPLETED


@pytest.mark.parametrize(
    "reply",
    [
        "call it b instead",
        {"decisions": [{"type": "respond", "message": "call it b instead"}]},
        [{"type": "response", "args": "call it b instead"}],
    ],
)
async def test_an_answer_goes_back_to_selection(notebook: Notebook, reply: object):
    deciders = scripted(WRITE, call("notebook.read_note", name="b"))
    async with session(deciders, notebook, allow_write_tools=True) as talk:
        await talk.ask(ASK)
        packet = await talk.reply(reply)
    asked_again = deciders.selector.seen[1]  # type: ignore[attr-defined]
    assert asked_again.content.clarifications == ("call it b instead",)
    assert packet.governance.approvals[0].outcome is ApprovalOutcome.ANSWERED
    assert [(one.tool_name, one.status.value) for one in packet.routing.all_calls] == [
        ("notebook.write_note", "skipped"),
        ("notebook.read_note", "executed"),
    ]
    assert notebook.called == ["read_note"]


async def test_a_call_rejected_in_words_is_not_repeated(notebook: Notebook):
    async with session(scripted(WRITE, WRITE), notebook, allow_write_tools=True) as talk:
        await talk.ask(ASK)
        packet = await talk.reply({"type": "reject", "message": "not like that"})
    assert notebook.calls == []
    assert "asked about or denied" in packet.response.candidate


async def test_the_reason_of_a_rejection_goes_to_selection(notebook: Notebook):
    """agent-chat-ui offers no other field for text."""
    deciders = scripted(WRITE, call("notebook.read_note", name="b"))
    async with session(deciders, notebook, allow_write_tools=True) as talk:
        await talk.ask(ASK)
        packet = await talk.reply({"decisions": [{"type": "reject", "message": "read b instead"}]})
    assert deciders.selector.seen[1].content.clarifications == ("read b instead",)  # type: ignore[attr-defined]
    assert [one.status.value for one in packet.routing.all_calls] == ["user_denied", "executed"]
    assert notebook.called == ["read_note"]


async def test_an_expired_question_runs_nothing(notebook: Notebook):
    async with session(scripted(WRITE), notebook, allow_write_tools=True, ask_timeout_s=1e-6) as talk:
        asked = await talk.ask(ASK)
        assert asked.question["expires_at"] == asked.packet.governance.question.expires_at.isoformat()  # type: ignore[union-attr]
        packet = await talk.reply("yes")
    assert packet.governance.approvals[0].outcome is ApprovalOutcome.EXPIRED
    assert packet.routing.execution_status is ToolExecutionStatus.SKIPPED
    assert notebook.calls == []
    assert "expired" in packet.response.candidate


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ({"decisions": []}, "not a reply"),
        (7, "not a reply"),
        (False, "not a reply"),
        ([], "not a reply"),
        ({"decisions": [{"type": "perhaps"}]}, "unknown decision 'perhaps'"),
        ({"decisions": [{"type": ["approve"]}]}, "unknown decision"),
        ({"decisions": [3]}, "unknown decision"),
        ({"decisions": [{"type": "approve"}] * 2}, "2 decisions for 1 calls"),
        ([{"type": "response", "args": ""}], 'needs a "message"'),
        ([{"type": "edit"}], 'an "edit" decision needs'),
        ([{"type": "edit", "args": {"name": "a"}}], "`text`"),
        ([{"type": "edit", "args": {"name": "a", "text": 5}}], "`text`"),
        ([{"type": "edit", "args": {"name": "a", "text": "x", "colour": "red"}}], "`colour`"),
        (
            [{"type": "edit", "args": {"action": "notebook.burn_note", "args": {"name": "a"}}}],
            "There is no tool `notebook.burn_note`",
        ),
    ],
)
async def test_an_unreadable_reply_repeats_the_question(notebook: Notebook, reply: object, problem: str):
    async with session(scripted(WRITE), notebook, allow_write_tools=True) as talk:
        first = await talk.ask(ASK)
        again = await talk.ask_again(reply)
        assert "problem" not in first.question
        assert problem in again.question["problem"]
        (before,), (after,) = first.question["action_requests"], again.question["action_requests"]
        assert problem in after["description"], "front ends show the description alone"
        assert {**after, "description": before["description"]} == before
        assert again.question["question_id"] != first.question["question_id"], "each wants an answer of its own"
        assert notebook.calls == []
        await talk.reply("yes")
    assert notebook.notes["a"] == "avocado"


async def test_the_record_contains_the_edited_call(notebook: Notebook):
    async with session(scripted(WRITE, none()), notebook, allow_write_tools=True) as talk:
        await talk.ask(ASK)
        packet = await talk.reply([{"type": "edit", "args": {"name": "b", "text": "butter"}}])
    assert packet.routing.all_calls[0].params == {"name": "b", "text": "butter"}
    assert packet.governance.approvals[0].params == {"name": "b", "text": "butter"}
    assert notebook.calls == [("write_note", {"name": "b", "text": "butter", "mode": "replace"})]
