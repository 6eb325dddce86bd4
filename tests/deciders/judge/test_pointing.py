"""From scores to words: which span, whether any, and that no two parameters take the same."""

import numpy as np
import pytest

from deciders.judge.pointing import Pointed, Span, pointed, slots

REQUEST = "Fly from Oslo to Rome"
OFFSETS = [(0, 3), (4, 8), (9, 13), (14, 16), (17, 21)]


def scores(best: int, size: int = 6) -> np.ndarray:
    found = np.zeros(size, dtype=np.float32)
    found[best] = 8
    return found


def test_a_span_of_tokens():
    found = pointed(scores(3), scores(5))
    assert found.spans[0][:2] == (2, 4)
    assert found.nothing < 0.05 < found.spans[0].probability


def test_no_words():
    assert pointed(scores(0), scores(0)).nothing > 0.9


def test_an_end_before_its_beginning_is_no_span():
    assert all(one.begin <= one.end for one in pointed(scores(4), scores(2)).spans)


def test_slots():
    found = {
        "origin": Pointed(0.1, (Span(2, 2, 0.8), Span(4, 4, 0.1))),
        "target": Pointed(0.2, (Span(2, 2, 0.5), Span(4, 4, 0.3))),
        "day": Pointed(0.9, (Span(0, 0, 0.1),)),
        "seats": Pointed(0.8, ()),
    }
    names = ("day", "origin", "seats", "target")
    filled = slots(REQUEST, OFFSETS, found, ("origin", "target", "day"), names)
    assert [(one.name, one.state, one.text) for one in filled] == [
        ("day", "missing", ""),
        ("origin", "filled", "Oslo"),
        ("seats", "default", ""),
        ("target", "filled", "Rome"),
    ]
    assert [REQUEST[one.start : one.end] for one in filled] == [one.text for one in filled]


@pytest.mark.parametrize(("required", "state"), [((), "default"), (("many",), "missing")])
def test_a_parameter_that_was_not_read(required: tuple[str, ...], state: str):
    (slot,) = slots(REQUEST, OFFSETS, {}, required, ("many",))
    assert (slot.state, slot.probability) == (state, 0.5)
