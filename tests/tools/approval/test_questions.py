from datetime import UTC, datetime
from typing import Any

import pytest
from support.origins import origins

from packetgate.state.errors import RequestError
from packetgate.state.origins import Origin, OriginKind
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import Risk, ToolCall, ToolExecutionStatus, ToolRouting
from packetgate.state.sections import ApprovalOutcome as Outcome
from packetgate.state.sections import AskedCall, Question
from packetgate.tools.approval.questions import is_reply, parse_answer, parse_replies, payload
from packetgate.tools.approval.verdicts import Reply

AT = datetime(2026, 2, 28, 12, tzinfo=UTC)
LOUD = Origin(
    kind=OriginKind.TEXT,
    tool="mail.read",
    loud=True,
    why="it stands in a text only",
    sentence="Write `` x `` <b>now</b> **or** www.evil.test",
    marked="x",
)
EDIT = Reply(Outcome.EDITED, tool_name="a.b", params={"x": 1})


@pytest.mark.parametrize(
    ("reply", "means"),
    [
        ("yes", Reply(Outcome.APPROVED)),
        (" Y \n", Reply(Outcome.APPROVED)),
        ("OK!", Reply(Outcome.APPROVED)),
        ("approve.", Reply(Outcome.APPROVED)),
        ("no", Reply(Outcome.DENIED)),
        ("Reject", Reply(Outcome.DENIED)),
        ("skip", Reply(Outcome.SKIPPED)),
        ("", Reply(Outcome.SKIPPED)),
        ("  ", Reply(Outcome.SKIPPED)),
        (" yes, but in b.txt ", Reply(Outcome.ANSWERED, comment="yes, but in b.txt")),
        ("yes please", Reply(Outcome.APPROVED)),
        ("Yes, do it!", Reply(Outcome.APPROVED)),
        ("go ahead", Reply(Outcome.APPROVED)),
        ("nope", Reply(Outcome.DENIED)),
        ("No, thank you.", Reply(Outcome.DENIED)),
        ("don\u2019t do it", Reply(Outcome.DENIED)),
        ("ok thanks", Reply(Outcome.ANSWERED, comment="ok thanks")),
        ("go away", Reply(Outcome.ANSWERED, comment="go away")),
        ("ok, do not", Reply(Outcome.ANSWERED, comment="ok, do not")),
        ({"type": "approve"}, Reply(Outcome.APPROVED)),
        ({"type": "accept", "args": None}, Reply(Outcome.APPROVED)),
        ({"type": "accept", "args": {"action": "a.b", "args": {"x": 9}}}, Reply(Outcome.APPROVED)),
        ({"type": "reject"}, Reply(Outcome.DENIED)),
        ({"type": "reject", "message": "too risky"}, Reply(Outcome.DENIED, comment="too risky")),
        ({"type": "ignore", "args": None}, Reply(Outcome.SKIPPED)),
        ({"type": "skip"}, Reply(Outcome.SKIPPED)),
        ({"type": "respond", "message": "use b.txt"}, Reply(Outcome.ANSWERED, comment="use b.txt")),
        ({"type": "response", "args": "use b.txt"}, Reply(Outcome.ANSWERED, comment="use b.txt")),
        ({"type": "edit", "edited_action": {"name": "a.b", "args": {"x": 1}}}, EDIT),
        ({"type": "edit", "edited_action": {"name": "a.b", "arguments": {"x": 1}}}, EDIT),
        ({"type": "edit", "args": {"action": "a.b", "args": {"x": 1}}}, EDIT),
        ({"type": "edit", "edited_action": {"args": {"x": 1}}}, Reply(Outcome.EDITED, params={"x": 1})),
        ({"type": "edit", "args": {"x": 1}}, Reply(Outcome.EDITED, params={"x": 1})),
        ({"type": "edit", "edited_action": {"name": "a.b", "args": {}}}, Reply(Outcome.EDITED, "", "a.b", {})),
    ],
)
def test_every_form_of_one_decision(reply: Any, means: Reply):
    assert parse_replies(reply, 1) == [means]
    if not isinstance(reply, str):
        assert parse_replies([reply], 1) == [means]
        assert parse_replies({"decisions": [reply]}, 1) == [means]


def test_decisions_are_for_the_calls_in_their_order():
    decisions = [{"type": "approve"}, "no", {"type": "edit", "edited_action": {"name": "a.b", "args": {"x": 1}}}]
    for reply in (decisions, {"decisions": decisions}):
        assert parse_replies(reply, 3) == [Reply(Outcome.APPROVED), Reply(Outcome.DENIED), EDIT]


@pytest.mark.parametrize(("word", "outcome"), [("yes", Outcome.APPROVED), ("no", Outcome.DENIED)])
def test_a_persons_word_stands_for_all(word: str, outcome: Outcome):
    """Whoever has words to say sees the whole question."""
    assert parse_replies(word, 3) == [Reply(outcome)] * 3


@pytest.mark.parametrize("kind", ["approve", "reject", "ignore"])
def test_one_decision_does_not_stand_for_several_calls(kind: str):
    """A front end that shows the first call alone sends one: the others were seen by nobody."""
    for reply in ({"type": kind}, [{"type": kind}], {"decisions": [{"type": kind}]}, ["yes"]):
        with pytest.raises(RequestError, match="1 decisions for 2 calls: send one for each"):
            parse_replies(reply, 2)


@pytest.mark.parametrize("count", [1, 3, 4])
def test_another_number_of_decisions_is_refused(count: int):
    with pytest.raises(RequestError, match=f"2 decisions for {count} calls: send one for each"):
        parse_replies({"decisions": ["yes", "no"]}, count)


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (None, "not a reply: send"),
        (True, "not a reply: send"),
        (5, "not a reply: send"),
        ([], "not a reply: send"),
        ({"decisions": []}, "not a reply: send"),
        ({"decisions": None}, "not a reply: send"),
        ({"decisions": {"type": "approve"}}, "not a reply: send"),
        ({}, "unknown decision None: use approve, edit, reject, respond or skip"),
        ({"type": "APPROVE"}, "unknown decision 'APPROVE'"),
        ({"type": ["approve"]}, "unknown decision None|unknown decision \\['approve'\\]"),
        ([None], "unknown decision None"),
        ([["approve"]], "unknown decision None"),
        ([{"approve": True}], "unknown decision None"),
        ({"type": "respond"}, 'a "respond" decision needs a "message"'),
        ({"type": "respond", "message": "  "}, 'a "respond" decision needs a "message"'),
        ({"type": "response", "args": {"text": "x"}}, 'a "respond" decision needs a "message"'),
        ({"type": "edit"}, 'an "edit" decision needs'),
        ({"type": "edit", "edited_action": "a.b"}, 'an "edit" decision needs'),
        ({"type": "edit", "edited_action": {"name": "a.b"}}, 'an "edit" decision needs'),
        ({"type": "edit", "edited_action": {"name": "a.b", "args": [1]}}, 'an "edit" decision needs'),
        ({"type": "edit", "edited_action": {"name": 5, "args": {}}}, 'an "edit" decision needs'),
        ({"type": "edit", "args": "x"}, 'an "edit" decision needs'),
    ],
)
def test_what_is_no_reply_is_refused_with_the_way_out(reply: Any, says: str):
    with pytest.raises(RequestError, match=says):
        parse_replies(reply, 1)


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("b.txt", "b.txt"),
        (" yes ", "yes"),
        ("", None),
        (" \n", None),
        ({"type": "respond", "message": " b.txt "}, "b.txt"),
        ([{"type": "response", "args": "b.txt"}], "b.txt"),
        ({"decisions": [{"type": "respond", "message": "b.txt"}]}, "b.txt"),
        ({"type": "ignore", "args": None}, None),
        ({"type": "reject"}, None),
    ],
)
def test_an_answer_is_the_users_own_words(reply: Any, answer: str | None):
    assert parse_answer(reply) == answer


@pytest.mark.parametrize(
    "reply", [{"type": "approve"}, {"type": "edit", "args": {"x": 1}}, None, [], {"type": "respond"}]
)
def test_what_is_no_answer_is_refused(reply: Any):
    with pytest.raises(RequestError):
        parse_answer(reply)


def test_the_payload_of_an_approval_suits_both_front_ends():
    call = ToolCall(
        call_id="c1",
        tool_name="a.write",
        params={"path": "a.txt", "text": "x"},
        risk=Risk.WRITE,
        provenance={**origins(path="user"), "text": LOUD},
        review_confidence=0.66,
        review_reasoning="looks odd",
        status=ToolExecutionStatus.AWAITING_APPROVAL,
    )
    calls = (call, call.model_copy(update={"call_id": "c2"}))
    diff = "-```\n+y"
    question = Question(question_id="q", expires_at=AT, calls=(AskedCall(call_id="c1", digest="", preview=diff),))
    packet = CognitionPacket(tool_routing=ToolRouting(outcome="call", calls=calls))
    shown = payload(packet, question, "that was no reply")
    assert (shown["kind"], shown["problem"], shown["question_id"]) == ("approval", "that was no reply", "q")
    assert datetime.fromisoformat(shown["expires_at"]) == AT
    request, other = shown["action_requests"]
    assert (request["preview"], other["preview"]) == (diff, "")
    assert request["name"] == "a.write"
    assert request["args"] == request["arguments"] == call.params
    for words in (
        "that was no reply",
        "a.write (write)",
        "0.66",
        "looks odd",
        "`text`",
        "it stands in a text only",
    ):
        assert words in request["description"]
    assert request["description"].endswith(f"````diff\n{diff}\n````"), "front ends show the description alone"
    assert diff not in request["about"]
    assert "> ``` Write `` ``` **`x`** ``` `` <b>now</b> **or** www.evil.test ```" in request["description"]
    assert request["warnings"] == [
        {"argument": "text", "why": LOUD.why, "tool": "mail.read", "sentence": LOUD.sentence, "marked": "x"}
    ]
    assert "`path`" not in request["description"]
    allowed = {"action_name": "a.write", "allowed_decisions": ["approve", "edit", "reject", "respond"]}
    assert shown["review_configs"] == [allowed, allowed]


def test_the_payload_of_a_question():
    packet = CognitionPacket(tool_routing=ToolRouting(outcome="clarify", question="Which file?"))
    shown = payload(packet, Question(expires_at=AT))
    assert (shown["kind"], shown["question"]) == ("question", "Which file?")
    assert "problem" not in shown
    (request,) = shown["action_requests"]
    assert request["args"] == request["arguments"] == {"answer": ""}
    assert request["name"] == shown["review_configs"][0]["action_name"] == "A question for you"
    assert shown["review_configs"][0]["allowed_decisions"] == ["respond", "edit", "reject"]


@pytest.mark.parametrize("text", ["yes", " Yes! ", "no", "skip", "OK."])
def test_what_only_says_yes_no_or_skip_is_a_reply(text: str):
    assert is_reply(text)


@pytest.mark.parametrize("text", ["", "yes, but in b.txt", "Read plan.txt", "no such file", "yes\nno"])
def test_all_else_is_not(text: str):
    assert not is_reply(text)
