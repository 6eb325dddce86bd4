"""Replies to questions: decisions of front ends, and words. Unclear words decide nothing."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from packetgate.gate.replies import (
    ACKNOWLEDGEMENTS,
    NO,
    SKIP,
    YES,
    CallReply,
    parse_answer,
    parse_replies,
    read_reply,
    tokens_of,
    verdict_of,
)
from packetgate.state.codes import Code
from packetgate.state.errors import RequestError
from packetgate.state.sections import ApprovalOutcome as Outcome

ONE = [("ai.delete", {"path": "old.log"})]
TWO = [("lights.turn_off", {"room": "kitchen"}), ("lights.turn_off", {"room": "hall"})]
THREE = [
    ("memory.create_entities", {"entities": [{"name": "Ada"}]}),
    ("ai.write", {"path": "b.txt", "content": "x"}),
    ("ai.delete", {"path": "c.txt"}),
]
LETTERS = {Outcome.APPROVED: "y", Outcome.DENIED: "n", Outcome.SKIPPED: "s"}
EDIT = CallReply(Outcome.EDITED, tool_name="a.b", params={"x": 1})


def letters(text: str, calls: list[tuple[str, dict[str, Any]]]) -> str:
    """Return one letter for each decided call; empty if nothing is decided."""
    return "".join(LETTERS[reply.outcome] for reply in read_reply(text, calls) or ())


@pytest.mark.parametrize(
    "text",
    "yes|Yes, please do that.|\U0001f44d|\U0001f44d\U0001f3fd|\u2705|ja bitte|oui, vas-y|S\u00ed!|\u662f|\u306f\u3044"
    "|\u0434\u0430|yes, delete it|yes delete old.log|ok go ahead|va bene|yes\U0001f44d|yes yes"
    "|da, v\u0103 rog".split("|"),
)
def test_words_for_yes_approve(text: str) -> None:
    assert letters(text, ONE) == "y"
    assert "delete" in text or letters(text, TWO) == "yy"


@pytest.mark.parametrize(
    "text",
    "no|NO!!!|\U0001f44e|nein, danke|non merci|\u4e0d|\u3044\u3044\u3048|don't|don\u2019t delete it|never mind"
    "|no, never|\u274c|nej tak|do not do that|rather not|thanks but no|not yet".split("|"),
)
def test_words_for_no_deny(text: str) -> None:
    assert letters(text, ONE) == "n"


@pytest.mark.parametrize(
    "text",
    "yes?|yes and no|yes but not old.log|not yes|no wait, actually yes|ok thanks|thanks|delete it"
    "|yes, delete everything|yes, delete new.log|absolutely not|1|yeah no|no problem|/help"
    "|yes if it is empty|I said yes".split("|"),
)
def test_unclear_words_decide_nothing(text: str) -> None:
    assert letters(text, ONE) == ""


@pytest.mark.parametrize(
    ("text", "two", "three"),
    [
        ("yes", "yy", "yyy"),
        ("no to all", "nn", "nnn"),
        ("yes to all of them", "yy", "yyy"),
        ("yes, no", "yn", ""),
        ("\U0001f44d \U0001f44e", "yn", ""),
        ("1 yes 2 no", "yn", ""),
        ("2 no, 1 yes", "yn", ""),
        ("1: ja 2: nein", "yn", ""),
        ("1 and 3 yes, 2 no", "", "yny"),
        *[
            (text, "", "")
            for text in (
                "only 2|both please|neither|yes, but only the first|yes to 1, skip the second"
                "|2|4 yes|yes to 1|1 yes 1 no 2 no|not 1|yes but not now|yes, never mind|yes... no, stop"
                "|yes, one of them|all in one|yes 1 no|yes, turn off everything|no to the kitchen and the garden|1 or 2"
                "|only|all|both?|yes?|yes to the kitchen, no to the hall|only 1, no".split("|")
            )
        ],
    ],
)
def test_numbers_decide_several_calls(text: str, two: str, three: str) -> None:
    assert (letters(text, TWO), letters(text, THREE)) == (two, three)


def test_a_number_that_is_also_a_value_of_another_call_decides_nothing() -> None:
    rooms = [("lights.turn_off", {"room": "2"}), ("lights.turn_off", {"room": "1"})]
    assert letters("yes to 2, no to 1", rooms) == ""


def test_no_word_has_two_verdicts() -> None:
    assert not YES & NO
    assert not SKIP & (YES | NO)
    assert ACKNOWLEDGEMENTS <= YES
    assert all(verdict_of(word) for words in (YES, NO, SKIP) for word in words if tokens_of(word) == [word])


@given(st.text(), st.integers(1, 3))
def test_any_text_decides_all_calls_or_none(text: str, count: int) -> None:
    replies = read_reply(text, THREE[:count])
    assert replies is None or len(replies) == count


@pytest.mark.parametrize("text", ["yes", " Yes! ", "no", "skip", "OK.", "nope", "don\u2019t do it", "No, thank you."])
def test_a_verdict_is_only_yes_no_or_skip(text: str):
    assert read_reply(text) is not None


@pytest.mark.parametrize("text", ["", "yes, but in b.txt", "Read plan.txt", "no such file", "yes\nno", "ok, do not"])
def test_other_text_is_no_verdict(text: str):
    assert read_reply(text) is None


@pytest.mark.parametrize(
    ("reply", "means"),
    [
        ("yes", CallReply(Outcome.APPROVED)),
        ("", CallReply(Outcome.SKIPPED)),
        (" yes, but in b.txt ", CallReply(Outcome.ANSWERED, comment="yes, but in b.txt")),
        ({"type": "approve"}, CallReply(Outcome.APPROVED)),
        ({"type": "accept", "args": None}, CallReply(Outcome.APPROVED)),
        ({"type": "accept", "args": {"action": "a.b", "args": {"x": 9}}}, CallReply(Outcome.APPROVED)),
        ({"type": "approve", "remember": "session"}, CallReply(Outcome.APPROVED, remember="session")),
        ({"type": "reject"}, CallReply(Outcome.DENIED)),
        ({"type": "reject", "message": "too risky"}, CallReply(Outcome.DENIED, comment="too risky")),
        ({"type": "ignore", "args": None}, CallReply(Outcome.SKIPPED)),
        ({"type": "skip"}, CallReply(Outcome.SKIPPED)),
        ({"type": "respond", "message": "use b.txt"}, CallReply(Outcome.ANSWERED, comment="use b.txt")),
        ({"type": "response", "args": "use b.txt"}, CallReply(Outcome.ANSWERED, comment="use b.txt")),
        ({"type": "edit", "edited_action": {"name": "a.b", "args": {"x": 1}}}, EDIT),
        ({"type": "edit", "edited_action": {"name": "a.b", "arguments": {"x": 1}}}, EDIT),
        ({"type": "edit", "args": {"action": "a.b", "args": {"x": 1}}}, EDIT),
        ({"type": "edit", "edited_action": {"args": {"x": 1}}}, CallReply(Outcome.EDITED, params={"x": 1})),
        ({"type": "edit", "args": {"x": 1}}, CallReply(Outcome.EDITED, params={"x": 1})),
    ],
)
def test_every_form_of_a_decision_is_read(reply: Any, means: CallReply):
    assert parse_replies(reply, 1) == [means]
    if not isinstance(reply, str):
        assert parse_replies([reply], 1) == [means]
        assert parse_replies({"decisions": [reply, "no"]}, 2) == [means, CallReply(Outcome.DENIED)]


def test_words_decide_all_calls_and_a_decision_decides_one():
    """A front end that shows only the first call sends one decision, because the user did not see the others."""
    assert parse_replies("yes", 3) == [CallReply(Outcome.APPROVED)] * 3
    for reply in ({"type": "approve"}, [{"type": "approve"}], {"decisions": [{"type": "reject"}]}, ["yes"]):
        with pytest.raises(RequestError) as caught:
            parse_replies(reply, 2)
        assert caught.value.code is Code.REPLY_INCOMPLETE


@pytest.mark.parametrize(
    "reply",
    [
        *(None, True, 5, [], {}, [None], [["approve"]], [{"approve": True}]),
        *({"decisions": []}, {"decisions": None}, {"decisions": {"type": "approve"}}),
        *({"type": "APPROVE"}, {"type": ["approve"]}, {"type": "skip", "remember": "always"}),
        *({"type": "respond"}, {"type": "respond", "message": "  "}, {"type": "response", "args": {"text": "x"}}),
        *({"type": "edit"}, {"type": "edit", "edited_action": "a.b"}, {"type": "edit", "args": "x"}),
        *({"type": "edit", "edited_action": {"name": name, "args": args}} for name, args in (("a.b", [1]), (5, {}))),
    ],
    ids=str,
)
def test_other_values_are_refused(reply: Any):
    with pytest.raises(RequestError) as caught:
        parse_replies(reply, 1)
    assert caught.value.code is Code.REPLY_UNUSABLE


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("b.txt", "b.txt"),
        (" yes ", "yes"),
        (" \n", None),
        ({"type": "respond", "message": " b.txt "}, "b.txt"),
        ([{"type": "response", "args": "b.txt"}], "b.txt"),
        ({"type": "edit", "args": {"answer": "b.txt"}}, "b.txt"),
        ({"type": "reject", "message": "b.txt"}, "b.txt"),
        ({"type": "ignore", "args": None}, None),
        ({"type": "reject"}, None),
    ],
)
def test_an_answer_in_words_is_read(reply: Any, answer: str | None):
    assert parse_answer(reply) == answer


@pytest.mark.parametrize("reply", [{"type": "approve"}, {"type": "edit", "args": {"x": 1}}, None, {"type": "respond"}])
def test_a_reply_without_words_is_no_answer(reply: Any):
    with pytest.raises(RequestError) as caught:
        parse_answer(reply)
    assert caught.value.code is Code.REPLY_UNUSABLE
