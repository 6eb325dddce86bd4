"""Of what models of many families write, only the words for the user are shown, in whatever pieces it arrives."""

import pytest
from support.later_outputs import LATER
from support.native_outputs import FAMILIES, HELD_OUT, ONE
from support.newest_outputs import BLIND, NEWEST

from packetgate.models.decoding.formats import BARE, CALLS, ECHOES, OPENINGS, THOUGHTS, TOKENS
from packetgate.models.markup.stripping import MarkupFilter, strip_markup

OUTPUTS = (*FAMILIES, *HELD_OUT, *LATER, *NEWEST)
STILL_SHOWN = {"ToolACE, words on the line", "GLM 4 0414"}
"""Calls without marks beside words: only the tools' names would tell them from prose."""
SIZES = (1, 3, 7, 10_000)


def streamed(text: str, size: int, *, opened: bool = False) -> tuple[str, str]:
    """Return what was shown while a text came in pieces, and what is left of it."""
    markup = MarkupFilter(opened=opened)
    shown = "".join(markup.feed(text[at : at + size]) for at in range(0, len(text), size)) + markup.close()
    return shown, markup.text


def test_every_family_is_cleaned():
    assert {output.id for output in OUTPUTS if strip_markup(output.text).text != output.shown} == STILL_SHOWN


def test_pieces_change_nothing():
    for output in OUTPUTS:
        for size in SIZES:
            shown, left = streamed(output.text, size)
            assert left == strip_markup(output.text).text, output.id
            # A thought whose beginning the template wrote is known for one only at its end.
            assert shown == left or "</think" in output.text.partition("<think>")[0] or "<|close|>" in output.text
            assert streamed(output.text, size, opened=True) == (left, left), output.id


def test_every_mark_is_cut_out():
    frames = [f"\n{one.begin}{ONE}{one.end}B" for one in (*CALLS, *BARE, *THOUGHTS, *ECHOES) if "`" not in one.begin]
    openings = [f"{one.begin}I look. {ONE}{one.end}B" for one in OPENINGS]
    tokens = [f"{token}B" for token in (*TOKENS, "<|im_end|>", "<\uff5cend\u2581of\u2581sentence\uff5c>", "</s>")]
    texts = [*frames, *openings, *tokens]
    assert [text for text in texts if strip_markup(text).text != "B" or streamed(text, 1)[0] != "B"] == []


def test_what_was_written_blind_is_cleaned():
    for output in BLIND:
        for size in SIZES:
            shown, _ = streamed(output.text, size, opened=output.opened)
            assert " ".join(shown.split()) == output.shown
            assert not [part for part in output.hidden if part in shown], output.id


@pytest.mark.parametrize("size", SIZES)
def test_a_thought_that_the_template_opened_is_never_shown_where_that_is_known(size: int):
    text = "They want the weather.\n</think>\n\nIt rains."
    markup = MarkupFilter(opened=True)
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    assert "".join(map(markup.feed, pieces)) + markup.close() == "It rains."
    assert markup.ended_thought
    plain = MarkupFilter(opened=True)
    assert (plain.feed("It rains."), plain.close(), plain.ended_thought) == ("", "It rains.", False)


LEFT = {
    'A<tool_call>{"name": "x", "arguments": {"t": "</tool_call> B"}}</tool_call>C': "AC",
    "Thought: hm\nAction: x\nAction Input: {}": "",
    "analysisThey ask.assistantfinalA": "A",
    "analysisThey ask.assistantcommentary to=functions.x json{}": "",
    "A\n[f(a=1)]\nB": "A\n\nB",
    'A\nAction: x\nAction Input: {"a": "Final Answer:"}\nFinal Answer: B': "A\n B",
    "<|channel|>analysis<|message|>hm": "",
    "<|channel|>final<|message|>A<|end|>": "A",
    "\u25c1think\u25b7hm\u25c1/think\u25b7A": "A",
    "hm[/THINK]A": "A",
    "<|channel>thought\nhm<channel|>A<turn|>": "A",
    "<s>old</s> new</s>": "<s>old</s> new",
    "They write <answer>.</think><answer>42</answer>": "42",
    "A<|unheard_of|>": "A",
    **{
        text: text
        for text in (
            "Think of it as a box.",
            "Analysis shows it.",
            "analysis of it: none.",
            "Take these:\nAction: run.\nAdd salt.",
            "A <tool> is not a <function>, nor {one}.",
            "<Tool>{name}</Tool> in JSX",
            ">>> x\n1\n>>>",
            "```python\n[f(a=1)]\n```\nA",
            f"A\n```tool_code\n{ONE}\n```\nB",
            "A\n[f(1)]\n[1] B",
            "<s>old</s> new",
            "```xml\n<function name='f'/>\n<function name='g'>\n</function>\n```",
            "It returns <answer>42</answer>.",
            "f <| g |> h",
            "[a]<b>c</b>",
            '{"name": "f", "parameters": {"type": "object", "properties": {}}}',
            "[f(a=1)](https://example.org)",
        )
    },
}


def test_what_is_left():
    cleaned = {text: {strip_markup(text).text, *(streamed(text, size)[1] for size in SIZES)} for text in LEFT}
    assert cleaned == {text: {left} for text, left in LEFT.items()}
