"""The limits of an answer hold for any chunks."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from packetgate.connectors.serve.answer_limit import AnswerLimit
from packetgate.tools.text.tokens import estimated_tokens


@given(
    st.lists(st.text("ab#\n", max_size=4), max_size=8), st.lists(st.text("ab#\n", min_size=1, max_size=4), max_size=3)
)
def test_a_stop_sequence_is_found_across_pieces(pieces: list[str], stop: list[str]) -> None:
    limit = AnswerLimit(tuple(stop))
    shown = [*map(limit.feed, pieces), limit.close()]
    text = "".join(pieces)
    assert (
        "".join(shown) == limit.text == text[: min((at for one in stop if (at := text.find(one)) >= 0), default=None)]
    )
    assert limit.is_stopped is any(one in text for one in stop)


@example(["a\n"], 1)
@given(st.lists(st.text("ab .\n\u4e00", max_size=9), max_size=8), st.integers(1, 12))
def test_no_more_tokens_are_shown_than_the_limit(pieces: list[str], most: int) -> None:
    limit = AnswerLimit(max_tokens=most)
    shown, text = "".join([*map(limit.feed, pieces), limit.close()]), "".join(pieces)
    assert text.startswith(shown)
    assert estimated_tokens(shown) <= most
    assert limit.is_cut is (estimated_tokens(text) > most)


@pytest.mark.parametrize(("stop", "shown"), [(("END",), "one "), (("two",), "one EN")])
def test_the_beginning_of_a_stop_sequence_at_the_end_is_shown(stop: tuple[str, ...], shown: str) -> None:
    limit = AnswerLimit(stop)
    assert limit.feed("one EN").strip() == shown.strip()
    assert limit.close() == "one EN".removeprefix(shown)
