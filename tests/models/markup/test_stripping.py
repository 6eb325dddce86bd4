"""Tool markup is cut out whole; text that only looks a little like it stays."""

from support.markup_texts import LEAKS, PLAIN

from packetgate.models.markup.stripping import Cleaned, strip_markup


def test_leaks_are_cut_out_and_counted():
    assert {leak: strip_markup(leak) for leak in LEAKS} == {leak: Cleaned(*left) for leak, left in LEAKS.items()}
    assert [leak for leak in LEAKS if strip_markup(strip_markup(leak).text).violations] == []


def test_all_else_stays():
    assert [text[:200] for text in PLAIN if strip_markup(text) != Cleaned(text, 0)] == []
