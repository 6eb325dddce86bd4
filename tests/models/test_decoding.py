"""JSON objects and calls of the known model families are parsed completely or not at all."""

import json
from typing import Any

import pytest
from support.native_outputs import ONE, OUTPUTS, PARIS, TWO, Calls

from packetgate.models.decoding import CALLS, ECHOES, THOUGHTS, calls_in, read_answer, unread_problem

A, B = {"a": 1}, {"b": 2}
CALL = {"tool": "fs.read", "params": {"path": "a{b}.txt", "deep": {"x": [{"y": "}"}]}}}
NESTED = json.loads("[" * 99 + "]" * 99)

CASES: list[tuple[str, str, dict[str, Any] | None]] = [
    ("plain", '{"a": 1}', A),
    ("empty object", "{}", {}),
    ("prose after", '{"a": 1} I hope that helps!', A),
    ("json fence", '```json\n{"a": 1}\n```', A),
    ("fence and prose", 'Answer:\n```json\n{"a": 1}\n```\nDone.', A),
    ("nested", '{"tool": "fs.read", "params": {"path": "a{b}.txt", "deep": {"x": [{"y": "}"}]}}}', CALL),
    ("closing brace in a string", '{"a": "}"}', {"a": "}"}),
    ("escaped quote before a brace", r'{"a": "\"}"}', {"a": '"}'}),
    ("fence in a string", '{"a": "```json\\n{}\\n```"}', {"a": "```json\n{}\n```"}),
    ("raw line break in a string", '{"a": "one\ntwo"}', {"a": "one\ntwo"}),
    ("escaped pair of surrogates", r'{"a": "\ud83d\ude42"}', {"a": "🙂"}),
    ("null, true, numbers", '{"a": [null, true, -1.5e3]}', {"a": [None, True, -1500.0]}),
    ("inside an array", '[{"a": 1}]', A),
    ("two objects", '{"a": 1}\n{"b": 2}', B),
    ("example, then answer", 'Format: {"a": 1}. My answer: {"b": 2}.', B),
    ("prose in braces after", '{"a": 1} as in {braces}', A),
    ("doubled braces", '{{"a": 1}}', A),
    ("object, then a truncated one", '{"a": 1} {"b": ', A),
    ("closed thinking", '<think>hm {"a": 1}</think>{"b": 2}', B),
    ("thinking with a lone quote", '<think>6" of {"a</think>{"b": 2}', B),
    ("two thinking blocks", '<think>{"a": 1}</think><think>again</think>{"b": 2}', B),
    ("thinking after the answer", '{"b": 2}<think>was it right? {"a": 1}</think>', B),
    ("thinking opened by the template, lone brace", 'hm, { or {"a": 1</think>\n{"b": 2}', B),
    ("thinking tags in a string", '{"a": "<think>x</think>"}', {"a": "<think>x</think>"}),
    ("closing tag in a string", '{"a": "</think>"}', {"a": "</think>"}),
    ("unclosed thinking after the answer", '{"b": 2}<think>but was', B),
    ("unclosed thinking, cut off in an object", '<think>maybe {"a": {"b": 2}', None),
    ("only a draft in thinking", '<think>{"a": 1}</think>I cannot decide.', None),
    ("thinking in brackets", '[THINK]{"a": 1}[/THINK]{"b": 2}', B),
    ("echo of a tool's output", '{"b": 2}<<<tool output 1: x>>>{"a": 1}<<<end of tool output 1>>>', B),
    ("echo with a forged end", '{"b": 2}<<<tool output 1: x>>><<<end of tool output 2>>>{"a": 1}', B),
    ("tool response", '{"b": 2}<tool_response>{"a": 1}</tool_response>', B),
    ("prose", "I would read the file.", None),
    ("array", "[1, 2]", None),
    ("string", '"{}"', {}),
    ("truncated: not its inner object", '{"tool": "x", "params": {"a": 1}', None),
    ("missing comma: not its inner object", '{"a": {"b": 2} "c": {"d": 3}}', None),
    ("broken, then sound", '{"a": nope} {"b": 2}', B),
    ("lone surrogate", r'{"a": "\ud800"}', None),
    ("not a number", '{"a": NaN}', None),
    ("number of too many digits", '{"a": ' + "9" * 5000 + "}", None),
    ("integer of 65 bits", '{"a": 18446744073709551616}', None),
    ("key twice further in", '{"a": [{"b": 1, "b": 1}]}', None),
    ("raw lone surrogate", '{"a": "\ud800"}', None),
    ("nested as deeply as allowed", '{"a": ' + "[" * 99 + "]" * 99 + "}", {"a": NESTED}),
    ("nested one deeper", '{"a": ' + "[" * 100 + "]" * 100 + "}", None),
    ("nested too deeply", '{"a":' * 100_000, None),
    ("many unclosed thoughts", "<think>" * 100_000 + '{"b": 2}', None),
]
"""Maps each name to a model's text and the object in it; None if the text contains no answer."""


def decoded(text: str) -> dict[str, Any] | None:
    values = [one.value for one in read_answer(text) if one.value is not None]
    return values[-1] if values else None


def test_the_last_json_object_is_decoded():
    wrong = [name for name, text, expected in CASES if decoded(text) != expected]
    assert wrong == []


def test_a_truncated_object_is_not_another_object():
    """Wherever a text breaks off, its object is parsed completely or not at all."""
    text = json.dumps(CALL)
    assert all(decoded(text[:end]) is None for end in range(len(text)))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a": {"b": 2}', "the answer breaks off within the JSON"),
        ('<think>maybe {"a": 1}, or', "the answer breaks off within a thought"),
        ('{"a": 1 "b": 2}', "the JSON is invalid near '{\"a\": 1 \"b\": 2}': Expecting ',' delimiter"),
        ('{"a": {"b": 1, "b": 2}}', "has the key 'b' twice in one object"),
        ('{"a": NaN}', "contains NaN, which is not a JSON number"),
        ('{"a": 99999999999999999999}', "does not fit 64 bits"),
        (r'{"a": "\ud800"}', "half a surrogate pair"),
        ('{"a":' * 101 + "1" + "}" * 101, "nested more than 100 levels deep"),
        ('[{"a": 1}, {"b": 2}]', "the list contains values that are not tool calls"),
        ("<function=f><parameter=a>1</parameter>", "the tool call breaks off"),
        ('<tool_call>{"name": 5}</tool_call>', "a tool call has no tool name"),
        ('<tool_call>{"name": "x", "arguments": [1]}</tool_call>', "the arguments of 'x' are not a JSON object"),
    ],
)
def test_unreadable_text_has_a_problem(text: str, problem: str):
    assert problem in unread_problem(text)
    assert len(unread_problem(text)) < 400
    assert not unread_problem('{"a": 1}')


X, Y = {"name": "x", "arguments": {"a": 1}}, {"name": "y", "arguments": {}}
NATIVE_X, NATIVE_Y = (f"<tool_call>{json.dumps(call)}</tool_call>" for call in (X, Y))


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        (NATIVE_X, [X]),
        (f"{NATIVE_X} and {NATIVE_Y}", [X, Y]),
        (f'{NATIVE_X} {{"b": 2}} {NATIVE_Y}', [X, Y]),
        (f'{{"b": 2}} {NATIVE_X}', [X]),
        (json.dumps([X, Y]), [X, Y]),
        (json.dumps({"tool_calls": [X, Y]}), [X, Y]),
        ('{"tool_calls": [{"function": {"name": "x", "arguments": "{\\"a\\": 1}"}}]}', [X]),
        ('{"tool_calls": [{"tool": " x ", "params": {"a": 1}}, {"tool_name": "y"}]}', [X, Y]),
        ('{"tool_calls": [{"name": "y", "arguments": ""}]}', [Y]),
        ('{"tool_calls": [{"name": "y", "arguments": null}]}', [Y]),
        ('{"tool_calls": []}', []),
        (f'{NATIVE_X} {{"b": 2}}', [X]),
        ('{"tool_calls": ["x"]}', []),
    ],
)
def test_calls_are_normalised(text: str, calls: list[dict[str, Any]]):
    assert [{"name": one.name, "arguments": one.arguments} for one in calls_in(text)] == calls


GARBAGE = ["{", "[{", '"', '{"', "{/*}", '{\\"</think>', '{"</think>', "<think>", "</think>", "<tool_call>"]


@pytest.mark.slow
@pytest.mark.parametrize("unit", GARBAGE)
def test_garbage_is_read_in_linear_time(unit: str):
    """In quadratic time, this would take hours."""
    assert not calls_in(unit * (1_000_000 // len(unit)))


def called(text: str) -> Calls | None:
    """Return the calls in a text; None if no call can be parsed."""
    return [(one.name, one.arguments) for one in calls_in(text)] or None


@pytest.mark.parametrize("output", OUTPUTS, ids=lambda one: one.id)
def test_the_calls_of_every_model_family_are_read(output):
    assert (called(output.text) or []) == output.calls


def test_a_call_is_read_between_all_marks():
    for row in CALLS:
        assert called(f"I look.\n{row.begin}{ONE}{row.end}") == called(f"{row.begin}{ONE}") == PARIS, row
    for token in ("<|im_end|>", "</s>", "<\uff5cend\u2581of\u2581sentence\uff5c>", "<end_of_turn>"):
        assert called(f"<tool_call>{ONE}{token}") == PARIS, token
    for row in (*THOUGHTS, *ECHOES):
        assert called(f"{row.begin}{TWO}{row.end}{ONE}") == PARIS, row
        assert not called(f"{row.begin}{TWO}{row.end}I look."), row


def test_a_truncated_call_is_not_another_call():
    """Wherever a text breaks off, its first calls are parsed completely or not at all."""
    for output in OUTPUTS:
        if "</think>" in output.text and "<think>" not in output.text:
            continue  # only the end of the thought identifies its beginning
        for end in range(0, len(output.text), 3):
            calls = called(output.text[:end]) or []
            assert calls == output.calls[: len(calls)], output.id


@pytest.mark.parametrize(
    "text",
    [
        f"<tool_call>{ONE[:-1]}",
        f"<tool_call>{ONE[:-1]}</tool_call><tool_call>{TWO}</tool_call>",
        '<tool_call>{"name": "get_weather", "city": "Paris"}</tool_call>',
        '<tool_call>{"arguments": {"name": "x"}}</tool_call>',
        f"<unknown_call name='create'>{ONE}</unknown_call>",
        f"<|unknown_call|>{ONE}<|/unknown_call|>",
        f"create({ONE})",
        f"You could write:\n```json\n{ONE}\n```\nbut no tool is needed here.",
        f"```xml\n<tool_call>{ONE}</tool_call>\n```\nis how it is written.",
        f"<think>I would call <tool_call>{ONE}</tool_call></think>No tool is needed.",
        f"<seed:think>I would call {ONE}</seed:think>No tool is needed.",
        f"<think>I could call {ONE}, or",
        '{"name": "x", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}',
        '{"function": {"name": "x", "description": "X.", "parameters": {"type": "object", "properties": {}}}}',
        "[get_weather(city='Paris'), get_weather(city=",
        '<|tool_call>call:x{a:<|"|>b}<tool_call|>',
        f"<|start|>functions.x to=assistant<|channel|>commentary<|message|>{ONE}<|end|>",
        "<function=w>\n<parameter=t>\na</parameter></function><function=rm>\n<parameter=p>/</parameter></function>\n"
        "</parameter>\n</function>",
        "<function=w><parameter=t>see <parameter=x>1</parameter></parameter></function><function=rm></function>",
        f"For example: [get_weather(city='Paris', days=2)] {ONE[:-1]}",
        'get_weather\n{"city": "Paris"}',
    ],
)
def test_ambiguous_text_is_not_a_call(text: str):
    assert not called(text)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        *(("two words", "two words"), ("\ntwo\nlines\n", "two\nlines"), ("\n\n  x\n\n", "\n  x\n"), ("", "")),
        *(("5", 5), ("-1.5", -1.5), ("007", "007"), ("1e999", "1e999"), ("NaN", "NaN"), ("9" * 30, "9" * 30)),
        *(("true", True), ("True", "True"), ("null", None), ('"quoted"', '"quoted"')),
        *(('["a", 1]', ["a", 1]), ('{"b": {}}', {"b": {}}), ('{"b": 1, "b": 2}', '{"b": 1, "b": 2}'), ("{b}", "{b}")),
        *(("<b>bold</b>", "<b>bold</b>"), (ONE, json.loads(ONE)), ("</tool_call>", "</tool_call>")),
    ],
)
def test_a_parameter_without_a_type_is_parsed(written: str, value: Any):
    ((_, arguments),) = called(f"<function=x><parameter=a>{written}</parameter></function>") or [("", {})]
    assert arguments == {"a": value}
    assert type(arguments["a"]) is type(value)
