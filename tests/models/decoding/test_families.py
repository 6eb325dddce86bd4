"""Each family's calls are read whatever stands around them; what breaks off or is not known is no call."""

from typing import Any

import pytest
from support.later_outputs import LATER
from support.native_outputs import DSML, FAMILIES, HELD_OUT, ONE, PARIS, TWO, Calls
from support.newest_outputs import BLIND, NEWEST, close_tag

from packetgate.deciders.language.selection import SelectionAnswer
from packetgate.models.decoding.formats import BARE, CALLS, ECHOES, THOUGHTS, TOKENS
from packetgate.models.decoding.native_calls import decode_json
from packetgate.models.markup.stripping import strip_markup
from packetgate.state.errors import DecisionError

STILL_REFUSED = {"ToolACE, words on the line", "GLM 4 0414", "Claude 2"}
"""What prose may look like as well, and a format that no current model writes."""


PROSE = [
    "The <tool> tag holds a call, as in <tool>...</tool>: say what you want.",
    "Use `<function>` for functions, and `Action:` for actions.",
    "Action: none needed.\nAction Input: none.",
    f"For example: [get_weather(city='Paris', days=2)] {ONE[:-1]}",
    "The analysis: assistantcommentary to=functions.x is how servers write it.",
    "analysis of the text shows assistantfinal and commentary to=x json {}, but no call",
    "Type:\n>>>x\n(1, 2)",
    'get_weather\n{"city": "Paris"}',
    "\u273fFUNCTION\u273f is how Qwen's agent begins.",
    '{"action": "Final Answer", "action_input": "It rains."}',
    '{"functionCall": "get_weather"}',
    '{"functionCall": {"name": "a", "args": {}}, "function_call": {"name": "b", "args": {}}}',
]
"""Words about calls."""


def called(text: str) -> Calls | None:
    """Return the calls that a selection reads in a text; None where it refuses the text."""
    try:
        answer = SelectionAnswer.model_validate(decode_json(text))
    except (DecisionError, ValueError):
        return None
    return [(call.tool, call.params) for call in answer.calls]


def test_every_family_is_read():
    known = (*FAMILIES, *LATER, *NEWEST, *BLIND)
    assert {output.id for output in known if (called(output.text) or []) != output.calls} == STILL_REFUSED


def test_a_call_is_read_in_every_frame():
    for row in (*CALLS, *BARE):
        assert called(f"I look.\n{row.begin}{ONE}{row.end}") == called(f"{row.begin}{ONE}") == PARIS, row
    for token in (*TOKENS, "<|im_end|>", "</s>", "<\uff5cend\u2581of\u2581sentence\uff5c>"):
        assert called(f"<tool_call>{ONE}{token}") == PARIS, token


def test_a_call_in_every_other_frame_is_none():
    for row in (*THOUGHTS, *ECHOES):
        assert called(f"{row.begin}{TWO}{row.end}{ONE}") == PARIS, row
        assert not called(f"{row.begin}{TWO}{row.end}I look."), row


def test_no_cut_makes_another_call_of_it():
    """Wherever a text breaks off, its first calls are there as a whole or not at all."""
    for output in (*FAMILIES, *NEWEST):
        for end in range(0, len(output.text), 3):
            calls = called(output.text[:end]) or []
            assert calls == output.calls[: len(calls)], output.id


@pytest.mark.parametrize("text", [
    f"<tool_call>{ONE[:-1]}",
    f"<tool_call>{ONE[:-1]}</tool_call><tool_call>{TWO}</tool_call>",
    '<tool_call>{"name": "get_weather", "city": "Paris"}</tool_call>',
    '<tool_call>{"arguments": {"name": "x"}}</tool_call>',
    f"<unheard_of_call name='create'>{ONE}</unheard_of_call>",
    f"<|unheard_of|>{ONE}<|/unheard_of|>",
    f"create({ONE})",
    f"create{ONE}",
    f"Action: create\nInput, as asked: create({ONE})",
    f"You could write:\n```json\n{ONE}\n```\nbut no tool is needed here.",
    f"```xml\n<tool_call>{ONE}</tool_call>\n```\nis how it is written.",
    f"<think>I would call <tool_call>{ONE}</tool_call></think>No tool is needed.",
    f"[THINK]I would call [TOOL_CALLS]{ONE}[/THINK]No tool is needed.",
    f"I would call {ONE}{close_tag('think')}No tool is needed.",
    '{"name": "x", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}',
    '{"function": {"name": "x", "description": "X.", "parameters": {"type": "object", "properties": {}}}}',
    "[get_weather('Paris')]",
    "[get_weather(city=place)]",
    "[get_weather(city='Paris'), get_weather(city=",
    "As in [get_weather(city='Paris')] of the manual.",
    "<function_calls>\n<invoke name=\"x\">\n<parameter name=\"a\">1</parameter>\n</function_calls>",
    "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>",
    '<|tool_call>call:x{a:<|"|>b}<tool_call|>',
    f"<|start|>functions.x to=assistant<|channel|>commentary<|message|>{ONE}<|end|>",
    f"<think>I could call {ONE}, or",
    f"I could do {ONE}. But no, rather {TWO}.",
    "<function=w>\n<parameter=t>\na</parameter></function><function=rm>\n<parameter=p>/</parameter></function>\n"
    "</parameter>\n</function>",
    *PROSE,
    "<function=w><parameter=t>see <parameter=x>1</parameter></parameter></function><function=rm></function>",
])  # fmt: skip
def test_what_cannot_be_certain_is_no_call(text: str):
    assert not called(text)


def test_a_held_out_set_is_read():
    read = [output for output in HELD_OUT if output.calls and called(output.text) == output.calls]
    refused = [output.id for output in HELD_OUT if output.calls and not called(output.text)]
    misread = [output.id for output in HELD_OUT if (called(output.text) or []) not in ([], output.calls)]
    asked = [output for output in HELD_OUT if output.calls]
    print(f"{len(asked)} outputs with calls: {len(read)} read, refused: {refused}, misread: {misread}")  # noqa: T201  the figures are for a reader
    assert len(asked) >= 40
    assert len(read) >= 0.85 * len(asked)
    assert not misread


@pytest.mark.parametrize("quoted", [ONE, f"<tool_call>{ONE}</tool_call>", "</tool_call>", "</function></tool_call> x"])
@pytest.mark.parametrize("form", [
    "<tool_call>\n<function=w>\n<parameter=t>\n{}\n</parameter>\n</function>\n</tool_call>",
    "<tool_call>w\n<arg_key>t</arg_key>\n<arg_value>{}</arg_value>\n</tool_call>",
    f'<{DSML}tool_calls><{DSML}invoke name="w"><{DSML}parameter name="t" string="true">{{}}</{DSML}parameter>'
    f"</{DSML}invoke></{DSML}tool_calls>",
], ids=["Qwen Coder", "GLM", "DeepSeek V4"])  # fmt: skip
def test_a_call_that_an_argument_quotes_is_none(form: str, quoted: str):
    written = f"a {quoted}"
    assert called(form.replace("{}", written)) == [("w", {"t": written})]
    assert strip_markup(f"A{form.replace('{}', written)}B").text == "AB"


def test_one_plain_call_is_one():
    assert called(ONE) == PARIS


@pytest.mark.parametrize(
    ("written", "value"),
    [
        *(("two words", "two words"), ("\ntwo\nlines\n", "two\nlines"), ("\n\n  x\n\n", "\n  x\n"), ("", "")),
        *(("5", 5), ("-1.5", -1.5), ("007", "007"), ("1e999", "1e999"), ("NaN", "NaN"), ("9" * 30, "9" * 30)),
        *(("true", True), ("True", "True"), ("null", None), ('"quoted"', '"quoted"')),
        *(('["a", 1]', ["a", 1]), ('{"b": {}}', {"b": {}}), ('{"b": 1, "b": 2}', '{"b": 1, "b": 2}'), ("{b}", "{b}")),
        *(("<b>bold</b>", "<b>bold</b>"), ("a < b > c", "a < b > c")),
    ],
)
def test_a_parameter_without_a_type(written: str, value: Any):
    ((_, arguments),) = called(f"<function=x><parameter=a>{written}</parameter></function>") or [("", {})]
    assert arguments == {"a": value}
    assert type(arguments["a"]) is type(value)
