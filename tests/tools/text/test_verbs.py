"""The lists of verbs do not contradict each other."""

import pytest

from packetgate.tools.text.verbs import (
    DOUBTFUL_READS,
    EXECUTE_VERBS,
    READ_VERBS,
    WRITE_VERBS,
    inflected_verb_kind,
    joined_in,
    verb_kind,
)


def test_a_verb_has_one_kind():
    assert not READ_VERBS & WRITE_VERBS
    assert not EXECUTE_VERBS & (READ_VERBS | WRITE_VERBS)
    assert DOUBTFUL_READS <= READ_VERBS


@pytest.mark.parametrize(
    ("word", "kind"),
    [("get", "reads"), ("Delete", "changes"), ("exec", "runs"), ("search", "reads?"), ("email", "either"), ("x", "")],
)
def test_a_verb_has_the_kind_of_its_list(word: str, kind: str):
    assert verb_kind(word) == kind


def test_forms_of_a_verb_and_second_verbs_are_known():
    assert [inflected_verb_kind(word) for word in ("creates", "creating", "copies")] == [
        "changes",
        "changes",
        "changes?",
    ]
    assert (joined_in("get_or_create"), joined_in("list_created")) == ("create", "")
