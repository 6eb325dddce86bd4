"""Markup is removed while the text arrives in any chunks. Other text is shown immediately."""

import re
from itertools import accumulate

import pytest
from support.native_outputs import ONE, OUTPUTS

from packetgate.models.decoding import CALLS, ECHOES, THOUGHTS
from packetgate.models.stripping import Cleaned, MarkupFilter, strip_markup

LEAKS = {
    "It is so.<|im_end|> ": ("It is so.", 1),
    # family: <tool_call> and similar marks
    "A<tool_call>{'name': 'x'}</tool_call>B": ("AB", 1),
    "A<tool_call>\n{}\n</tool_call>\nB": ("A\nB", 1),
    "A <TOOL_CALL>x</TOOL_CALL> B": ("A  B", 1),
    'A<tool_call id="1">x</tool_call>B': ("AB", 1),
    "A<tool_call>{'name': 'x'": ("A", 1),
    "A<tool_call>1</tool_call>B<tool_call>2</tool_call>C": ("ABC", 2),
    "A<tool_use>x</tool_use>B": ("AB", 1),
    '<invoke name="read"><parameter name="p">x</parameter></invoke>B': ("B", 1),
    "A<tool_call": ("A", 1),
    "A</tool_call>B": ("AB", 1),
    # family: <think>
    "<think>Let me see.</think>A": ("A", 1),
    "<reasoning>Let\nme\nsee.</reasoning>A": ("A", 1),
    "A<think>I never stop": ("A", 1),
    "The user wants this.</think>A": ("A", 1),
    "A</think>": ("A", 1),
    'The user wants this.</think>{"tool": "x", "params": {}}': ("", 2),
    "The user wants this.</think><tool_call>x</tool_call>": ("", 2),
    "<think><tool_call>x</tool_call></think>A": ("A", 1),
    # family: <function=...>
    "A<function=read>{}</function>B": ("AB", 1),
    "A</function>B": ("AB", 1),
    # family: <|...|>
    "A<|python_tag|>read('x')<|eom_id|>B": ("AB", 1),
    "A<| Start of Functions Tool Call |>x<| End of Functions Tool Call |>B": ("AB", 1),
    "A<|Tool Call|>B": ("AB", 1),
    "A<\uff5ctool\u2581calls\u2581begin\uff5c>x<\uff5ctool\u2581calls\u2581end\uff5c>B": ("AB", 1),
    # family: [TOOL_CALLS]
    'A[TOOL_CALLS][{"name": "x"}][/TOOL_CALLS]B': ("AB", 1),
    'A[TOOL_CALLS][{"name": "x"}]': ("A", 1),
    # only a call
    '{"tool": "x", "params": {}}': ("", 1),
    ' [{"name": "x", "arguments": {}}] ': ("", 1),
    '```json\n{"tool": "x", "params": {"text": "```"}}\n```\n': ("", 1),
    "```tool_code\nread(path='x')\n```": ("", 1),
    '<think>x</think>```json\n{"tool": "x", "params": {}}\n```': ("", 2),
    # after a fence
    "```python\nx = '```'\n```<|im_end|>": ("```python\nx = '```'\n```", 1),
    "- A:\n  ```\n  x\n  ```\n<think>x</think>B": ("- A:\n  ```\n  x\n  ```\nB", 1),
    "```json\n{}```\n[f(a=1)]\nB": ("```json\n{}```\n\nB", 1),
    "A\n[f(a=1)]\nB": ("A\n\nB", 1),
    # nested marks, and marks that a removal completes
    "A<tool_<think>x</think>call>{}</tool_call>B": ("AB", 2),
    "A<<think></think>tool_call>{}</tool_call>B": ("AB", 2),
    'A `code` <think>x</think><tool_call>{"text": "```\\n`"}</tool_call> and `<think>`': ("A `code`  and `<think>`", 2),
}
"""Texts with leaked markup, each with the remaining text and the number of removed parts."""

PLAIN = [
    "The tokens <|user|> and <|assistant|> mark turns.",
    "It ends with <|endoftext|> in that vocabulary.",
    "He said \u201e<think>\u201c is its tag, and \u201e</think>\u201c the end.",
    *("", "Apples.", "a < b and c > d", "I think so. <b>Bold</b>", "<toolbox>", "x <| y |> z"),
    '{"name": "Ada", "age": 36}',
    "[1, 2]",
    "{broken",
    'Here it is:\n```json\n{"name": "Ada", "age": 36}\n```',
    '```python\nx = 1\n```\n{"name": "Ada"} is ```no``` call.',
    "```c\n{ int x; }\n```",
    "A <tool",
    "Use this:\n[item.strip() for item in text.split(',')]\nDone.",
    "[item.strip() for item in text.split(',')]",
    "See:\n[note() in the manual (page 3)]\nend",
    "```tools.py\nx = 1\n```",
    "```\nread_file\n```",
    'The config is {"tool": "x", "params": {}}, as you see.',
    "Use `tool_call` in [brackets].",
    "a\n\n\n\nb",
    # written by the author: in a line of code
    "Use `<think>` to start and `</think>` to end a thought.",
    'Hermes writes `<tool_call>{"name": "x", "arguments": {}}</tool_call>` around calls.',
    "Mistral writes `[TOOL_CALLS]` first, ChatML ``<|im_start|>`user``.",
    "The call is `[f(a=1)]`.",
    "`<tool_call>`",
    # in a fence
    'A\n```json\n{"tool": "x", "params": {}}\n```\nB',
    '```json\n{"name": "x", "arguments": {}}\n```\nend',
    '```json\n{"tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}\n```\nend',
    "```xml\n<function=foo><parameter=a>1</parameter></function>\n```\nend",
    "````markdown\n```xml\n<think>x</think>\n```\n<tool_call>\n````\nend",
    "1. So:\n   ```\n   [f(a=1)]\n   <|python_tag|>f()\n   ```\n2. Done.",
    "```\n<tool_call>never ended",
    # in a sentence
    "Use <think> to start and </think> to end a thought.",
    "Mistral writes [TOOL_CALLS] first (and [/TOOL_CALLS] last).",
    'The tag "<tool_call>" opens a call, and </tool_call> ends it.',
    *("[" * 100_000, '```json\n{"a" ```' * 6000),
]
"""Texts that must stay unchanged."""

TEXTS = [text for text in (*LEAKS, *PLAIN) if len(text) < 200]
ORPHANS = {text for text in TEXTS if re.fullmatch(r"[^<]*</think>.*\S.*", text)}
"""Texts whose first half is recognised as a thought only at the end of that half."""


def shown(markup: MarkupFilter, *pieces: str) -> list[str]:
    """Return the complete displayed text after each chunk and at the end."""
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
        complete = shown(markup, *pieces)[-1]
        assert markup.text == output.shown, output.id
        assert complete == output.shown or "</think" in output.text.partition("<think>")[0], output.id


def test_every_mark_is_removed():
    frames = [f"\n{one.begin}{ONE}{one.end}B" for one in (*CALLS, *THOUGHTS, *ECHOES) if "`" not in one.begin]
    unknown = [f"<|{name}_start|>{ONE}<|{name}_end|>B" for name in ("tool_calls_section", "START_action")]
    tags = [f"<{tag}>{ONE}</{tag}>B" for tag in ("minimax:tool_call", "longcat_tool_call", "seed:think")]
    tokens = [f"{token}B" for token in ("<|im_end|>", "<\uff5cend\u2581of\u2581sentence\uff5c>", "</s>")]
    for text in (*frames, *unknown, *tags, *tokens):
        markup = MarkupFilter()
        assert (strip_markup(text).text, shown(markup, *text)[-1]) == ("B", "B"), text


def test_a_quoted_end_mark_does_not_end_a_call():
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
        if text in ORPHANS:  # a thought without a beginning is shown without its mark
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
    """The filter holds back at most this many characters, including white space before them."""
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
