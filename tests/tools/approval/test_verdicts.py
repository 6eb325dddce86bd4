"""Replies in words: yes and no in many languages, to all that is asked or to each; what is unclear decides nothing."""

import pytest

from packetgate.state.sections import ApprovalOutcome as Outcome
from packetgate.tools.approval.verdicts import decided_in, tokens_of, verdict_of

ONE = [("ai.delete", {"path": "old.log"})]
TWO = [("lights.turn_off", {"room": "kitchen"}), ("lights.turn_off", {"room": "hall"})]
THREE = [
    ("memory.create_entities", {"entities": [{"name": "Ada"}]}),
    ("ai.write", {"path": "b.txt", "content": "x"}),
    ("ai.delete", {"path": "c.txt"}),
]
LETTERS = {Outcome.APPROVED: "y", Outcome.DENIED: "n", Outcome.SKIPPED: "s"}


def decided(text: str, calls: list[tuple[str, dict[str, object]]]) -> str:
    """Return a letter for each call; empty where nothing is decided."""
    return "".join(LETTERS[one.outcome] for one in decided_in(text, calls) or ())


@pytest.mark.parametrize(
    "text",
    "yes|Yes, please do that.|\U0001f44d"
    "|\U0001f44d\U0001f3fd|\u2705|ja bitte|oui, vas-y|S\u00ed!|\u662f|\u306f\u3044|\u0434\u0430"
    "|yes, delete it|yes delete old.log|ok go ahead|va bene|yes\U0001f44d|yes yes|da, v\u0103 rog".split("|"),
)
def test_yes(text: str) -> None:
    assert decided(text, ONE) == "y"
    assert text.startswith("yes delete") or text.endswith("delete it") or decided(text, TWO) == "yy"


@pytest.mark.parametrize(
    "text",
    "no|NO!!!|\U0001f44e|nein, danke"
    "|non merci|\u4e0d|\u3044\u3044\u3048|don't|don\u2019t delete it|never mind|no, never|\u274c|nej tak"
    "|do not do that|rather not".split("|"),
)
def test_no(text: str) -> None:
    assert decided(text, ONE) == "n"


@pytest.mark.parametrize(
    "text",
    "yes?|yes and no|yes but not old.log|not yes|no wait, actually yes|ok thanks|thanks|delete it"
    "|yes, delete everything|yes, delete new.log|absolutely not|1|yeah no|no problem|/help"
    "|yes if it is empty|I said yes".split("|"),
)
def test_what_is_not_plain_decides_nothing(text: str) -> None:
    assert decided(text, ONE) == ""


@pytest.mark.parametrize(
    ("text", "means"),
    [
        *[
            ("yes, no", "yn"),
            ("1 yes 2 no", "yn"),
            ("2 no, 1 yes", "yn"),
            ("1: ja 2: nein", "yn"),
            ("\U0001f44d \U0001f44e", "yn"),
        ],
        *[("yes to the kitchen, no to the hall", "yn"), ("kitchen yes, hall no", "yn"), ("only the hall", "ny")],
        *[("both", "yy"), ("neither", "nn"), ("no to all", "nn"), ("all except the kitchen", "ny"), ("yes", "yy")],
        *[("the first yes, the other no", "yn"), ("yes to 1, skip the rest", "ys"), ("yes, but only the hall", "ny")],
        *[
            ("2", ""),
            ("3 yes", ""),
            ("yes to the garden", ""),
            ("yes to 1", ""),
            ("1 yes 1 no 2 no", ""),
            ("not 1", ""),
        ],
        *[("yes but not the hall", "yn"), ("yes, not 2", "yn"), ("yes but not", ""), ("yes but not now", "")],
        *[
            (words, "")
            for words in ("yes, never mind", "yes, cancel", "yes... no, stop", "yes, one of them", "all in one")
        ],
        *[("all of them", "yy"), ("yes to both of them", "yy"), ("no to them", "nn")],
        *[("yes 1 no", ""), ("yes, turn off everything", ""), ("no to the kitchen and the garden", ""), ("1 or 2", "")],
    ],
)
def test_of_two(text: str, means: str) -> None:
    assert decided(text, TWO) == means


@pytest.mark.parametrize(
    ("text", "means"),
    [
        *[("1 and 3 yes, 2 no", "yny"), ("yes to b.txt and c.txt, no to Ada", "nyy"), ("all but 2", "yny")],
        *[("yes to everything else", ""), ("yes, no", ""), ("4 yes", ""), ("delete c.txt yes, rest no", "nny")],
    ],
)
def test_of_three(text: str, means: str) -> None:
    assert decided(text, THREE) == means


@pytest.mark.parametrize(("text", "means"), [("yes to the plan, no to the todo", "yn"), ("s\u00ed a todo", "")])
def test_a_name_comes_before_a_word_for_all(text: str, means: str) -> None:
    assert decided(text, [("ai.delete", {"path": "plan.txt"}), ("ai.delete", {"path": "todo.txt"})]) == means


def test_a_number_of_one_call_that_is_a_value_of_another_names_neither() -> None:
    rooms = [("lights.turn_off", {"room": "2"}), ("lights.turn_off", {"room": "1"})]
    assert decided("yes to 2, no to 1", rooms) == ""
    rooms = [("lights.turn_off", {"room": "204"}), ("lights.turn_off", {"room": "205"})]
    assert decided("yes to 204, no to 205", rooms) == "yn"


def test_no_word_says_two_things() -> None:
    from packetgate.tools.approval.verdicts import HEARD, NO, SKIP, YES

    assert not YES & NO
    assert not SKIP & (YES | NO)
    assert HEARD <= YES
    assert all(verdict_of(word) for words in (YES, NO, SKIP) for word in words if tokens_of(word) == [word])
