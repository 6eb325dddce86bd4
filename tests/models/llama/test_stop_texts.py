from dataclasses import dataclass
from itertools import combinations

import pytest

from models.llama.sampling import StopTexts


@dataclass(frozen=True)
class Case:
    text: str
    stops: tuple[str, ...]
    kept: str
    met: bool = True


CASES = {
    "none": Case("abcdef", (), "abcdef", met=False),
    "an empty one": Case("abcdef", ("",), "abcdef", met=False),
    "absent": Case("abcdef", ("x",), "abcdef", met=False),
    "begun, not ended": Case("abcde", ("cdef",), "abcde", met=False),
    "at the start": Case("abcdef", ("ab",), ""),
    "in the middle": Case("abcdef", ("cd",), "ab"),
    "at the end": Case("abcdef", ("ef",), "abcd"),
    "the whole": Case("abcdef", ("abcdef",), ""),
    "twice": Case("abcab", ("b",), "a"),
    "the first of several": Case("abcdef", ("ef", "cd"), "ab"),
    "one inside another": Case("abcdef", ("bcde", "cd"), "ab"),
    "one that begins another": Case("abcdef", ("bcd", "bc"), "a"),
    "overlapping": Case("abcdef", ("bcd", "cde"), "a"),
    "begun anew": Case("aabaac", ("aac",), "aab"),
    "repeating": Case("aaaab", ("aab",), "aa"),
    "broken off, then another": Case("abcxyz", ("abd", "cx"), "ab"),
    "beyond ASCII": Case("né🙂!", ("🙂",), "né"),
    "empty and one more": Case("abc", ("", "c"), "ab"),
}


def cuts(text: str) -> list[list[str]]:
    """Return every way to cut the text into pieces."""
    places = [at for count in range(len(text)) for at in combinations(range(1, len(text)), count)]
    return [[text[begin:end] for begin, end in zip((0, *at), (*at, len(text)), strict=True)] for at in places]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_in_whatever_pieces_the_text_comes(case: Case):
    for pieces in cuts(case.text):
        stops = StopTexts(case.stops)
        let_through = "".join(map(stops.feed, pieces))
        assert (let_through + stops.rest(), stops.met) == (case.kept, case.met), pieces


def test_only_what_may_begin_a_stop_text_is_held_back():
    stops = StopTexts(["<end>"])
    assert [stops.feed(piece) for piece in ("a<", "en", "x<e", "nd", ">b", "c")] == ["a", "", "<enx", "", "", ""]
    assert stops.met
    assert stops.rest() == ""


def test_what_was_held_back_is_the_rest_once():
    stops = StopTexts(["<end>"])
    assert stops.feed("a<en") == "a"
    assert (stops.rest(), stops.rest()) == ("<en", "")
