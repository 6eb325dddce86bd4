import json
from dataclasses import dataclass
from typing import Any

import pytest

from packetgate.models.decoding.decode import MAX_CHARS, decode_json
from packetgate.state.errors import DecisionError


@dataclass(frozen=True)
class Case:
    id: str
    text: str
    expected: dict[str, Any] | None
    """None: there is no answer in it."""


A, B = {"a": 1}, {"b": 2}
CALL = {"tool": "fs.read", "params": {"path": "a{b}.txt", "deep": {"x": [{"y": "}"}]}}}
NESTED = json.loads("[" * 99 + "]" * 99)

CASES = [
    Case("plain", '{"a": 1}', A),
    Case("empty object", "{}", {}),
    Case("white space around", ' \n\t{"a": 1}\r\n ', A),
    Case("prose before", 'Sure, here it is: {"a": 1}', A),
    Case("prose after", '{"a": 1} I hope that helps!', A),
    Case("byte order mark", '\ufeff{"a": 1}', A),
    Case("json fence", '```json\n{"a": 1}\n```', A),
    Case("bare fence", '```\n{"a": 1}\n```', A),
    Case("unclosed fence", '```json\n{"a": 1}', A),
    Case("fence and prose", 'Answer:\n```json\n{"a": 1}\n```\nDone.', A),
    Case("nested", '{"tool": "fs.read", "params": {"path": "a{b}.txt", "deep": {"x": [{"y": "}"}]}}}', CALL),
    Case("closing brace in a string", '{"a": "}"}', {"a": "}"}),
    Case("opening brace in a string", '{"a": "{"}', {"a": "{"}),
    Case("escaped quote before a brace", r'{"a": "\"}"}', {"a": '"}'}),
    Case("backslash at the end of a string", r'{"a": "C:\\"}', {"a": "C:\\"}),
    Case("fence in a string", '{"a": "```json\\n{}\\n```"}', {"a": "```json\n{}\n```"}),
    Case("raw line break in a string", '{"a": "one\ntwo"}', {"a": "one\ntwo"}),
    Case("unicode", '{"a": "naïve 🙂 \\u00e9"}', {"a": "naïve 🙂 é"}),
    Case("escaped pair of surrogates", r'{"a": "\ud83d\ude42"}', {"a": "🙂"}),
    Case("null, true, numbers", '{"a": [null, true, -1.5e3]}', {"a": [None, True, -1500.0]}),
    Case("inside an array", '[{"a": 1}]', A),
    Case("two objects", '{"a": 1}\n{"b": 2}', B),
    Case("two objects without a space", '{"a": 1}{"b": 2}', B),
    Case("example, then answer", 'Format: {"a": 1}. My answer: {"b": 2}.', B),
    Case("prose in braces before", 'use {braces} here: {"a": 1}', A),
    Case("prose in braces after", '{"a": 1} as in {braces}', A),
    Case("doubled braces", '{{"a": 1}}', A),
    Case("object, then a truncated one", '{"a": 1} {"b": ', A),
    Case("closed thinking", '<think>hm {"a": 1}</think>{"b": 2}', B),
    Case("thinking with a lone brace", '<think>if (x) { maybe</think>{"b": 2}', B),
    Case("thinking with a lone quote", '<think>6" of {"a</think>{"b": 2}', B),
    Case("two thinking blocks", '<think>{"a": 1}</think><think>again</think>{"b": 2}', B),
    Case("thinking after the answer", '{"b": 2}<think>was it right? {"a": 1}</think>', B),
    Case("thinking opened by the template", 'hm, {"a": 1}?</think>\n{"b": 2}', B),
    Case("thinking opened by the template, lone brace", 'hm, { or {"a": 1</think>\n{"b": 2}', B),
    Case("thinking tags in a string", '{"a": "<think>x</think>"}', {"a": "<think>x</think>"}),
    Case("closing tag in a string", '{"a": "</think>"}', {"a": "</think>"}),
    Case("unclosed thinking that ends with the answer", '<think>so it is {"b": 2}', B),
    Case("unclosed thinking that ends with a fenced answer", '<think>so:\n```json\n{"b": 2}\n```\n', B),
    Case("unclosed thinking after the answer", '{"b": 2}<think>but was', B),
    Case("unclosed thinking, cut off", '<think>maybe {"a": 1}, or rather', None),
    Case("unclosed thinking, cut off in an object", '<think>maybe {"a": {"b": 2}', None),
    Case("only a draft in thinking", '<think>{"a": 1}</think>I cannot decide.', None),
    Case("thinking in capitals", '<THINK>{"a": 1}</THINK>{"b": 2}', B),
    Case("thinking in brackets", '[THINK]{"a": 1}[/THINK]{"b": 2}', B),
    Case("echo of a tool's output", '{"b": 2}<<<tool output 1: x>>>{"a": 1}<<<end of tool output 1>>>', B),
    Case("echo with a forged end", '{"b": 2}<<<tool output 1: x>>><<<end of tool output 2>>>{"a": 1}', B),
    Case("tool response", '{"b": 2}<tool_response>{"a": 1}</tool_response>', B),
    Case("empty", "", None),
    Case("white space", " \n", None),
    Case("prose", "I would read the file.", None),
    Case("array", "[1, 2]", None),
    Case("number", "7", None),
    Case("string", '"{}"', {}),
    Case("truncated: not its inner object", '{"tool": "x", "params": {"a": 1}', None),
    Case("truncated in a string", '{"a": "one', None),
    Case("missing comma: not its inner object", '{"a": {"b": 2} "c": {"d": 3}}', None),
    Case("broken, then sound", '{"a": nope} {"b": 2}', B),
    Case("lone surrogate", r'{"a": "\ud800"}', None),
    Case("not a number", '{"a": NaN}', None),
    Case("infinite by overflow", '{"a": 1e999}', None),
    Case("number of too many digits", '{"a": ' + "9" * 5000 + "}", None),
    Case("integer of 64 bits", '{"a": 18446744073709551615}', {"a": 18446744073709551615}),
    Case("integer of 65 bits", '{"a": 18446744073709551616}', None),
    Case("key twice", '{"a": 1, "a": 2}', None),
    Case("key twice further in", '{"a": [{"b": 1, "b": 1}]}', None),
    Case("raw lone surrogate", '{"a": "\ud800"}', None),
    Case("nested as deeply as may be", '{"a": ' + "[" * 99 + "]" * 99 + "}", {"a": NESTED}),
    Case("nested one deeper", '{"a": ' + "[" * 100 + "]" * 100 + "}", None),
    Case("nested too deeply", '{"a":' * 100_000, None),
    Case("many open braces", "{" * 100_000, None),
    Case("many unclosed thoughts", "<think>" * 100_000 + '{"b": 2}', B),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_decode(case: Case):
    if case.expected is None:
        with pytest.raises(DecisionError):
            decode_json(case.text)
    else:
        assert decode_json(case.text) == case.expected


def test_error_quotes_the_answer_shortened():
    with pytest.raises(DecisionError, match="no complete JSON object: 'blah blah") as caught:
        decode_json("blah " * 1000)
    assert len(str(caught.value)) < 250


def test_error_says_that_the_answer_is_empty():
    with pytest.raises(DecisionError, match="empty"):
        decode_json("  ")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a": {"b": 2}', "breaks off in the middle of its JSON"),
        ("{'a': {'b': 2}", "breaks off in the middle of its JSON"),
        ('[{"a": 1}, {"b"', "breaks off in the middle of its JSON"),
        ('<think>maybe {"a": 1}, or', "breaks off while it is still thinking"),
        ('{"a": 1 "b": 2}', "its JSON is broken near '{\"a\": 1 \"b\": 2}': Expecting ',' delimiter"),
        ('{"a": {"b": 1, "b": 2}}', "names 'b' twice in one object"),
        ('{"a": NaN}', "holds NaN, which is no JSON number"),
        ('{"a": 1e999}', "holds 1e999, which is no JSON number"),
        ('{"a": 99999999999999999999}', "larger than 64 bits"),
        (r'{"a": "\ud800"}', "half a surrogate pair"),
        ('{"a":' * 101 + "1" + "}" * 101, "nested more than 100 deep"),
        ('[{"a": 1}, {"b": 2}]', "a list, but not one of tool calls only"),
        ("<function=f><parameter=a>1</parameter>", "breaks off in the middle of a tool call"),
        ('{"tool_calls": [{"name": 5}]}', "a tool call names no tool"),
        ('{"tool_calls": [{"name": "x", "arguments": [1]}]}', "the arguments of 'x' are no JSON object"),
        ('{"tool_calls": ["x"]}', "a tool call must be a JSON object"),
        ("x" * (MAX_CHARS + 1), "longer than 1,000,000 characters"),
    ],
)
def test_error_says_what_is_wrong(text: str, problem: str):
    with pytest.raises(DecisionError) as caught:
        decode_json(text)
    assert problem in str(caught.value)
    assert len(str(caught.value)) < 400


X, Y = {"name": "x", "arguments": {"a": 1}}, {"name": "y", "arguments": {}}
NATIVE_X, NATIVE_Y = (f"<tool_call>{json.dumps(call)}</tool_call>" for call in (X, Y))


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        (NATIVE_X, [X]),
        (f"{NATIVE_X} and {NATIVE_Y}", [X, Y]),
        (f'{NATIVE_X} {{"b": 2}} {NATIVE_Y}', [Y]),
        (f'{{"b": 2}} {NATIVE_X}', [X]),
        (json.dumps([X, Y]), [X, Y]),
        (json.dumps({"tool_calls": [X, Y]}), [X, Y]),
        ('{"tool_calls": [{"function": {"name": "x", "arguments": "{\\"a\\": 1}"}}]}', [X]),
        ('{"tool_calls": [{"tool": " x ", "params": {"a": 1}}, {"tool_name": "y"}]}', [X, Y]),
        ('{"tool_calls": [{"name": "y", "arguments": ""}]}', [Y]),
        ('{"tool_calls": [{"name": "y", "arguments": null}]}', [Y]),
        ('{"tool_calls": []}', []),
    ],
)
def test_calls_in_one_normal_form(text: str, calls: list[dict[str, Any]]):
    assert decode_json(text) == {"tool_calls": calls}


def test_an_object_after_calls_is_the_answer():
    assert decode_json(f'{NATIVE_X} {{"b": 2}}') == B


GARBAGE = [
    "{",
    "{ ",
    "[",
    "[{",
    '"',
    '{"',
    "{'",
    "{/*}",
    '{\\"</think>',
    '{"</think>',
    "<think>",
    "</think>",
    "<tool_call>",
]


@pytest.mark.parametrize("unit", GARBAGE)
def test_garbage_is_read_in_linear_time(unit: str):
    """Were it quadratic, this would take hours."""
    with pytest.raises(DecisionError):
        decode_json(unit * (MAX_CHARS // len(unit)))
