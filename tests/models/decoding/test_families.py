"""Each family's calls are read whatever stands around them; what breaks off or is not known is no call."""

import pytest
from support.later_outputs import LATER
from support.native_outputs import FAMILIES, HELD_OUT, ONE, PARIS, TWO, Calls, Output
from support.newest_outputs import BLIND, DSML, M3, NEWEST, close_tag, kimi, kimi_call

from packetgate.deciders.language.selection import SelectionAnswer
from packetgate.models.decoding.decode import decode_json
from packetgate.models.decoding.formats import BARE, CALLS, ECHOES, HEADERS, THOUGHTS, TOKENS, Frame
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


@pytest.mark.parametrize("output", [*FAMILIES, *NEWEST], ids=lambda output: output.id)
def test_a_family_is_read(output: Output):
    assert (called(output.text) or []) == output.calls


@pytest.mark.parametrize("row", [*CALLS, *BARE], ids=repr)
def test_a_call_is_read_in_every_frame(row: Frame):
    assert called(f"I look.\n{row.begin}{ONE}{row.end}") == called(f"{row.begin}{ONE}") == PARIS


@pytest.mark.parametrize("row", [*THOUGHTS, *ECHOES, *HEADERS], ids=repr)
def test_a_call_in_every_other_frame_is_none(row: Frame):
    assert called(f"{row.begin}{TWO}{row.end}{ONE}") == PARIS
    assert not called(f"{row.begin}{TWO}{row.end}I look.")


@pytest.mark.parametrize("token", TOKENS)
def test_every_token_may_stand_behind_a_call(token: str):
    assert called(f"<tool_call>{ONE}{token}") == PARIS


@pytest.mark.parametrize("output", LATER, ids=lambda output: output.id)
def test_what_came_later_is_read(output: Output):
    assert (called(output.text) or []) == ([] if output.id in STILL_REFUSED else output.calls)


@pytest.mark.parametrize("output", [*FAMILIES, *LATER, *NEWEST], ids=lambda output: output.id)
def test_no_cut_makes_another_call_of_it(output: Output):
    """Wherever a text breaks off, its first calls are there as a whole or not at all."""
    for end in range(len(output.text)):
        assert (called(output.text[:end]) or []) in [output.calls[:count] for count in range(len(output.calls) + 1)]


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
    f'{M3}<tool_call>{M3}<invoke name="x">{M3}<a>1{M3}</b>{M3}</invoke>{M3}</tool_call>',
    f'{M3}<tool_call>{M3}<invoke name="x">{M3}<a>1{M3}</a>{M3}<a>2{M3}</a>{M3}</invoke>{M3}</tool_call>',
    f'{M3}<tool_call>{M3}<invoke name="x">words{M3}</invoke>{M3}</tool_call>',
    f'{M3}<tool_call>{M3}<invoke name="x">{f"{M3}<a>" * 2000}',
    kimi(kimi_call("x", {"a": "b"})).replace(close_tag("argument"), ""),
    kimi(kimi_call("x", {"a": kimi(kimi_call("y", {"b": "c"}))})),
    kimi(kimi_call("x", {"a": "".join(map(close_tag, ["argument", "call", "tools"]))})),
    f'{M3}<tool_call>{M3}<invoke name="x">{M3}<a>{f"{M3}</a>{M3}</invoke>{M3}</tool_call>" * 2}',
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


@pytest.mark.parametrize("output", BLIND, ids=lambda output: output.id)
def test_what_was_written_blind_is_read(output: Output):
    assert (called(output.text) or []) == output.calls


@pytest.mark.parametrize("quoted", [ONE, f"<tool_call>{ONE}</tool_call>", "</tool_call>", "</function></tool_call> x"])
@pytest.mark.parametrize("form", [
    "<tool_call>\n<function=w>\n<parameter=t>\n{}\n</parameter>\n</function>\n</tool_call>",
    "<tool_call>w\n<arg_key>t</arg_key>\n<arg_value>{}</arg_value>\n</tool_call>",
    f'<{DSML}tool_calls><{DSML}invoke name="w"><{DSML}parameter name="t" string="true">{{}}</{DSML}parameter>'
    f"</{DSML}invoke></{DSML}tool_calls>",
    kimi(kimi_call("w", {"t": "{}"})),
    f'{M3}<tool_call>{M3}<invoke name="w">{M3}<t>{{}}{M3}</t>{M3}</invoke>{M3}</tool_call>',
], ids=["Qwen Coder", "GLM", "DeepSeek V4", "Kimi K3", "MiniMax M3"])  # fmt: skip
def test_a_call_that_an_argument_quotes_is_none(form: str, quoted: str):
    written = f"a {quoted}"
    assert called(form.replace("{}", written)) == [("w", {"t": written})]
    assert strip_markup(f"A{form.replace('{}', written)}B").text == "AB"


def test_one_plain_call_is_one():
    assert called(ONE) == PARIS
