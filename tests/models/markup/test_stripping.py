"""Tool markup is cut out whole; text that only looks a little like it stays."""

import pytest
from support.markup_texts import LEAKS, PLAIN

from packetgate.models.markup.stripping import strip_markup


@pytest.mark.parametrize(("leak", "left"), LEAKS.items())
def test_leak(leak: str, left: tuple[str, int]):
    clean = strip_markup(leak)
    assert (clean.text, clean.violations) == left


@pytest.mark.parametrize("leak", LEAKS)
def test_nothing_is_left_to_cut(leak: str):
    assert strip_markup(strip_markup(leak).text).violations == 0


@pytest.mark.parametrize("text", PLAIN)
def test_stays(text: str):
    clean = strip_markup(text)
    assert (clean.text, clean.violations) == (text, 0)
