"""Markup is caught while the text arrives, wherever the pieces are cut; all else is shown at once."""

import re
from itertools import accumulate

import pytest
from support.markup_texts import LEAKS, PLAIN
from support.native_outputs import ONE, OUTPUTS

from packetgate.models.decoding import CALLS, ECHOES, THOUGHTS
from packetgate.models.stripping import Cleaned, MarkupFilter, strip_markup

TEXTS = [text for text in (*LEAKS, *PLAIN) if len(text) < 200]
ORPHANS = {text for text in TEXTS if re.fullmatch(r"[^<]*</think>.*\S.*", text)}
"""Texts whose first half can only be known for a thought when it is over."""


def shown(markup: MarkupFilter, *pieces: str) -> list[str]:
    """Return all that was shown after each piece, and after the last."""
    return list(accumulate([*map(markup.feed, pieces), markup.close()]))


def test_leaked_markup_is_removed_and_counted():
    assert {leak: strip_markup(leak) for leak in LEAKS} == {leak: Cleaned(*left) for leak, left in LEAKS.items()}
    assert [leak for leak in LEAKS if strip_markup(strip_markup(leak).text).violations] == []
    assert [text[:200] for text in PLAIN if strip_markup(text) != Cleaned(text, 0)] == []


@pytest.mark.parametrize("size", [1, 3, 7, 10_000])
def test_markup_of_every_model_family_is_removed(size: int):
    for output in OUTPUTS:
        markup = MarkupFilter()
        pieces = [output.text[at : at + size] for at in range(0, len(output.text), size)]
        whole = shown(markup, *pieces)[-1]
        assert markup.text == output.shown, output.id
        assert whole == output.shown or "</think" in output.text.partition("<think>")[0], output.id


def test_every_mark_is_removed():
    frames = [f"\n{one.begin}{ONE}{one.end}B" for one in (*CALLS, *THOUGHTS, *ECHOES) if "`" not in one.begin]
    unknown = [f"<|{name}_start|>{ONE}<|{name}_end|>B" for name in ("tool_calls_section", "START_action")]
    tags = [f"<{tag}>{ONE}</{tag}>B" for tag in ("minimax:tool_call", "longcat_tool_call", "seed:think")]
    tokens = [f"{token}B" for token in ("<|im_end|>", "<\uff5cend\u2581of\u2581sentence\uff5c>", "</s>")]
    for text in (*frames, *unknown, *tags, *tokens):
        markup = MarkupFilter()
        assert (strip_markup(text).text, shown(markup, *text)[-1]) == ("B", "B"), text


def test_a_quoted_end_mark_ends_no_call():
    text = 'A<tool_call>{"name": "x", "arguments": {"t": "</tool_call> B"}}</tool_call>C'
    assert strip_markup(text) == Cleaned("AC", 1)


def test_the_result_does_not_depend_on_the_pieces():
    for text in TEXTS:
        clean, at_once = strip_markup(text), shown(MarkupFilter(), text)[-1]
        cuts = [(text[:at], text[at:]) for at in range(1, len(text))]
        for pieces in [*cuts, tuple(text)]:
            markup = MarkupFilter()
            assert shown(markup, *pieces)[-1] == at_once
            assert (markup.text, markup.violations) == (clean.text, clean.violations)


def test_shown_text_is_never_taken_back():
    for text in TEXTS:
        markup = MarkupFilter()
        clean, steps = strip_markup(text).text, shown(markup, *text)
        if text in ORPHANS:  # a thought without a beginning is shown, but its mark is not
            assert "think" not in steps[-1]
            assert steps[-1].endswith(markup.text)
            assert markup.text == LEAKS[text][0]
        else:
            assert steps[-1] == clean
            assert all(clean.startswith(step) for step in steps)


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("The gate opens at seven, says the plan; nobody knows why.", 2),
        ("If a < b and b < c, then a < c.", 2),
        ("It's **bold**, [a link](https://example.org), and `code`.", 7),
        ("The <title> and the <table> stay.", 7),
        ("<p>Take <b>this</b>.</p>", 3),
        ("See [TODO] and [1].", 4),
        ("A line.\n\nAnother:\n- one\n- two", 3),
        ("```python\nprint([1, 2])\n```", 9),
    ],
)
def test_prose_is_shown_at_once(text: str, held: int):
    """Held back are at most so many characters, white space before them among these."""
    markup = MarkupFilter()
    waiting, so_far, all_shown = [], "", ""
    for char in text:
        so_far += char
        all_shown += markup.feed(char)
        assert text.startswith(all_shown)
        waiting.append(len(so_far.rstrip()) - len(all_shown))
    assert max(waiting) <= held
    assert all_shown + markup.close() == text


def test_a_thought_is_hidden_and_the_answer_is_shown_at_once():
    markup = MarkupFilter()
    assert "".join(markup.feed(piece) for piece in ["<thi", "nk>", *["Hm, "] * 1000, "</thin", "k>", "\n\n"]) == ""
    assert markup.feed("It") == "It"
    assert (markup.feed(" says"), markup.feed(" so."), markup.close()) == (" says", " so.", "")
