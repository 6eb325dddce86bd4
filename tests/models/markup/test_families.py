"""Of what models of many families write, only the words for the user are shown, in whatever pieces it arrives."""

import pytest
from support.later_outputs import LATER
from support.native_outputs import FAMILIES, HELD_OUT, ONE, Output
from support.newest_outputs import BLIND, NEWEST, Blind

from packetgate.models.decoding.formats import BARE, CALLS, ECHOES, HEADERS, OPENINGS, THOUGHTS, TOKENS, Frame, Opening
from packetgate.models.markup.stripping import MarkupFilter, strip_markup

STILL_SHOWN = {"ToolACE, words on the line", "GLM 4 0414"}
"""Calls without marks beside words: only the tools' names would tell them from prose."""


def streamed(text: str, size: int, *, opened: bool = False) -> tuple[str, str]:
    """Return what was shown while a text came in pieces, and what is left of it."""
    markup = MarkupFilter(opened=opened)
    shown = "".join(markup.feed(text[at : at + size]) for at in range(0, len(text), size)) + markup.close()
    return shown, markup.text


@pytest.mark.parametrize("output", [*FAMILIES, *NEWEST], ids=lambda output: output.id)
def test_a_family_is_cleaned(output: Output):
    assert strip_markup(output.text).text == output.shown


@pytest.mark.parametrize("size", [1, 3, 7])
@pytest.mark.parametrize("output", [*FAMILIES, *HELD_OUT, *LATER], ids=lambda output: output.id)
def test_pieces_change_nothing(output: Output, size: int):
    shown, left = streamed(output.text, size)
    assert left == strip_markup(output.text).text
    # A thought whose beginning the template wrote is known for one only at its end.
    assert shown == left or "</think>" in output.text.partition("<think>")[0]


def test_a_held_out_set_is_cleaned():
    leaks = {output.id for output in (*HELD_OUT, *LATER) if strip_markup(output.text).text != output.shown}
    print(f"{len(HELD_OUT) + len(LATER)} outputs, not clean: {sorted(leaks)}")  # noqa: T201  the figures are for a reader
    assert leaks == STILL_SHOWN


@pytest.mark.parametrize("row", [*CALLS, *BARE, *THOUGHTS, *ECHOES, *HEADERS, *OPENINGS], ids=repr)
def test_every_frame_is_cut_out_unless_it_is_a_fence_in_an_answer(row: Frame | Opening):
    if row.begin.startswith("```"):
        text = f"A\n{row.begin}{ONE}\n{row.end}\nB"
        assert strip_markup(text).text == text
        return
    text = f"{row.begin}I look. {ONE}{row.end}B" if isinstance(row, Opening) else f"\n{row.begin}{ONE}{row.end}B"
    assert strip_markup(text).text == "B"
    assert streamed(text, 1)[0] == "B"


@pytest.mark.parametrize("token", TOKENS)
def test_every_token_is_cut_out(token: str):
    assert strip_markup(f"{token}A").text == "A"


@pytest.mark.parametrize("size", [1, 3, 7, 10_000])
@pytest.mark.parametrize("output", [*NEWEST, *BLIND], ids=lambda output: output.id)
def test_no_thought_that_may_have_been_opened_is_shown(output: Output, size: int):
    shown, left = streamed(output.text, size, opened=True)
    assert shown == left == strip_markup(output.text).text


@pytest.mark.parametrize("output", BLIND, ids=lambda output: output.id)
def test_what_was_written_blind_is_cleaned(output: Blind):
    for size in (1, 3, 7, 10_000):
        shown, _ = streamed(output.text, size, opened=output.opened)
        assert " ".join(shown.split()) == output.shown
        assert not [part for part in output.hidden if part in shown]


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_a_thought_that_the_template_opened_is_never_shown_where_that_is_known(size: int):
    text = "They want the weather.\n</think>\n\nIt rains."
    markup = MarkupFilter(opened=True)
    assert (
        "".join(markup.feed(text[at : at + size]) for at in range(0, len(text), size)) + markup.close() == "It rains."
    )
    assert markup.ended_thought
    plain = MarkupFilter(opened=True)
    assert (plain.feed("It rains."), plain.close(), plain.ended_thought) == ("", "It rains.", False)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('A<tool_call>{"name": "x", "arguments": {"t": "</tool_call> B"}}</tool_call>C', "AC"),
        ("Thought: hm\nAction: x\nAction Input: {}", ""),
        ("Think of it as a box.", "Think of it as a box."),
        ("Analysis shows it.", "Analysis shows it."),
        ("analysis of it: none.", "analysis of it: none."),
        ("analysisThey ask.assistantfinalA", "A"),
        ("analysisThey ask.assistantcommentary to=functions.x json{}", ""),
        ("Take these:\nAction: run.\nAdd salt.", "Take these:\nAction: run.\nAdd salt."),
        ("A <tool> is not a <function>, nor {one}.", "A <tool> is not a <function>, nor {one}."),
        ("<Tool>{name}</Tool> in JSX", "<Tool>{name}</Tool> in JSX"),
        (">>> x\n1\n>>>", ">>> x\n1\n>>>"),
        ("```python\n[f(a=1)]\n```\nA", "```python\n[f(a=1)]\n```\nA"),
        ("A\n[f(a=1)]\nB", "A\n\nB"),
        ("A\n[f(1)]\n[1] B", "A\n[f(1)]\n[1] B"),
        ('A\nAction: x\nAction Input: {"a": "Final Answer:"}\nFinal Answer: B', "A\n B"),
        ("<|channel|>analysis<|message|>hm", ""),
        ("<|channel|>final<|message|>A<|end|>", "A"),
        ("\u25c1think\u25b7hm\u25c1/think\u25b7A", "A"),
        ("hm[/THINK]A", "A"),
        ("<|channel>thought\nhm<channel|>A<turn|>", "A"),
        ("<s>old</s> new", "<s>old</s> new"),
        ("<s>old</s> new</s>", "<s>old</s> new"),
        (
            "```xml\n<function name='f'/>\n<function name='g'>\n</function>\n```",
            "```xml\n<function name='f'/>\n<function name='g'>\n</function>\n```",
        ),
        ("It returns <answer>42</answer>.", "It returns <answer>42</answer>."),
        ("They write <answer>.</think><answer>42</answer>", "42"),
        ("A<|unheard_of|>", "A"),
        ("f <| g |> h", "f <| g |> h"),
        ("A<|open|>B[a]<|eot_id|>", "AB[a]"),
        ("[a]<b>c</b>", "[a]<b>c</b>"),
        (
            '{"name": "f", "parameters": {"type": "object", "properties": {}}}',
            '{"name": "f", "parameters": {"type": "object", "properties": {}}}',
        ),
        ("[f(a=1)](https://example.org)", "[f(a=1)](https://example.org)"),
    ],
)
def test_what_is_left(text: str, left: str):
    assert strip_markup(text).text == left
    assert all(streamed(text, size)[1] == left for size in (1, 3, 7))
