"""The JSON object of an answer is found by a real decoder, whatever stands around it and however it is spelled."""

import json
from typing import Any

import pytest

from packetgate.models.decoding.native_calls import MAX_CHARS, decode_json
from packetgate.state.errors import DecisionError

A, B = {"a": 1}, {"b": 2}
CALL = {"tool": "fs.read", "params": {"path": "a{b}.txt", "deep": {"x": [{"y": "}"}]}}}
NESTED = json.loads("[" * 99 + "]" * 99)

CASES: list[tuple[str, str, dict[str, Any] | None]] = [
    ("plain", '{"a": 1}', A),
    ("empty object", "{}", {}),
    ("white space around", ' \n\t{"a": 1}\r\n ', A),
    ("prose before", 'Sure, here it is: {"a": 1}', A),
    ("prose after", '{"a": 1} I hope that helps!', A),
    ("byte order mark", '\ufeff{"a": 1}', A),
    ("json fence", '```json\n{"a": 1}\n```', A),
    ("bare fence", '```\n{"a": 1}\n```', A),
    ("unclosed fence", '```json\n{"a": 1}', A),
    ("fence and prose", 'Answer:\n```json\n{"a": 1}\n```\nDone.', A),
    ("nested", '{"tool": "fs.read", "params": {"path": "a{b}.txt", "deep": {"x": [{"y": "}"}]}}}', CALL),
    ("closing brace in a string", '{"a": "}"}', {"a": "}"}),
    ("opening brace in a string", '{"a": "{"}', {"a": "{"}),
    ("escaped quote before a brace", r'{"a": "\"}"}', {"a": '"}'}),
    ("backslash at the end of a string", r'{"a": "C:\\"}', {"a": "C:\\"}),
    ("fence in a string", '{"a": "```json\\n{}\\n```"}', {"a": "```json\n{}\n```"}),
    ("raw line break in a string", '{"a": "one\ntwo"}', {"a": "one\ntwo"}),
    ("unicode", '{"a": "naïve 🙂 \\u00e9"}', {"a": "naïve 🙂 é"}),
    ("escaped pair of surrogates", r'{"a": "\ud83d\ude42"}', {"a": "🙂"}),
    ("null, true, numbers", '{"a": [null, true, -1.5e3]}', {"a": [None, True, -1500.0]}),
    ("inside an array", '[{"a": 1}]', A),
    ("two objects", '{"a": 1}\n{"b": 2}', B),
    ("two objects without a space", '{"a": 1}{"b": 2}', B),
    ("example, then answer", 'Format: {"a": 1}. My answer: {"b": 2}.', B),
    ("prose in braces before", 'use {braces} here: {"a": 1}', A),
    ("prose in braces after", '{"a": 1} as in {braces}', A),
    ("doubled braces", '{{"a": 1}}', A),
    ("object, then a truncated one", '{"a": 1} {"b": ', A),
    ("closed thinking", '<think>hm {"a": 1}</think>{"b": 2}', B),
    ("thinking with a lone brace", '<think>if (x) { maybe</think>{"b": 2}', B),
    ("thinking with a lone quote", '<think>6" of {"a</think>{"b": 2}', B),
    ("two thinking blocks", '<think>{"a": 1}</think><think>again</think>{"b": 2}', B),
    ("thinking after the answer", '{"b": 2}<think>was it right? {"a": 1}</think>', B),
    ("thinking opened by the template", 'hm, {"a": 1}?</think>\n{"b": 2}', B),
    ("thinking opened by the template, lone brace", 'hm, { or {"a": 1</think>\n{"b": 2}', B),
    ("thinking tags in a string", '{"a": "<think>x</think>"}', {"a": "<think>x</think>"}),
    ("closing tag in a string", '{"a": "</think>"}', {"a": "</think>"}),
    ("unclosed thinking that ends with the answer", '<think>so it is {"b": 2}', B),
    ("unclosed thinking that ends with a fenced answer", '<think>so:\n```json\n{"b": 2}\n```\n', B),
    ("unclosed thinking after the answer", '{"b": 2}<think>but was', B),
    ("unclosed thinking, cut off", '<think>maybe {"a": 1}, or rather', None),
    ("unclosed thinking, cut off in an object", '<think>maybe {"a": {"b": 2}', None),
    ("only a draft in thinking", '<think>{"a": 1}</think>I cannot decide.', None),
    ("thinking in capitals", '<THINK>{"a": 1}</THINK>{"b": 2}', B),
    ("thinking in brackets", '[THINK]{"a": 1}[/THINK]{"b": 2}', B),
    ("echo of a tool's output", '{"b": 2}<<<tool output 1: x>>>{"a": 1}<<<end of tool output 1>>>', B),
    ("echo with a forged end", '{"b": 2}<<<tool output 1: x>>><<<end of tool output 2>>>{"a": 1}', B),
    ("tool response", '{"b": 2}<tool_response>{"a": 1}</tool_response>', B),
    ("empty", "", None),
    ("white space", " \n", None),
    ("prose", "I would read the file.", None),
    ("array", "[1, 2]", None),
    ("number", "7", None),
    ("string", '"{}"', {}),
    ("truncated: not its inner object", '{"tool": "x", "params": {"a": 1}', None),
    ("truncated in a string", '{"a": "one', None),
    ("missing comma: not its inner object", '{"a": {"b": 2} "c": {"d": 3}}', None),
    ("broken, then sound", '{"a": nope} {"b": 2}', B),
    ("lone surrogate", r'{"a": "\ud800"}', None),
    ("not a number", '{"a": NaN}', None),
    ("infinite by overflow", '{"a": 1e999}', None),
    ("number of too many digits", '{"a": ' + "9" * 5000 + "}", None),
    ("integer of 64 bits", '{"a": 18446744073709551615}', {"a": 18446744073709551615}),
    ("integer of 65 bits", '{"a": 18446744073709551616}', None),
    ("key twice", '{"a": 1, "a": 2}', None),
    ("key twice further in", '{"a": [{"b": 1, "b": 1}]}', None),
    ("raw lone surrogate", '{"a": "\ud800"}', None),
    ("nested as deeply as may be", '{"a": ' + "[" * 99 + "]" * 99 + "}", {"a": NESTED}),
    ("nested one deeper", '{"a": ' + "[" * 100 + "]" * 100 + "}", None),
    ("nested too deeply", '{"a":' * 100_000, None),
    ("many open braces", "{" * 100_000, None),
    ("many unclosed thoughts", "<think>" * 100_000 + '{"b": 2}', B),
]
"""What a model wrote, by name, and the object in it; None: there is no answer in it."""

LOOSE: list[tuple[str, str, dict[str, Any] | None]] = [
    ("trailing comma", '{"a": 1,}', A),
    ("trailing comma in a list", '{"a": [1, 2,],}', {"a": [1, 2]}),
    ("single quotes", "{'a': 'x'}", {"a": "x"}),
    ("double quote in single quotes", "{'a': 'say \"x\"'}", {"a": 'say "x"'}),
    ("single quote escaped", r"{'a': 'it\'s'}", {"a": "it's"}),
    ("single quote needlessly escaped", r"""{"a": "it\'s"}""", {"a": "it's"}),
    ("other escapes stay", r"{'a': '\n\u00e9\\'}", {"a": "\né\\"}),
    ("bare keys", "{a: 1}", A),
    ("Python's words", "{'a': [True, False, None]}", {"a": [True, False, None]}),
    ("Python's words in a string", "{'a': 'True, None'}", {"a": "True, None"}),
    ("line comment", '{"a": 1 // one: {"b": 2}\n}', A),
    ("block comment", '{/* {"b": 2} */ "a": 1}', A),
    ("comment marks in a string", "{'a': 'http://x/*y*/'}", {"a": "http://x/*y*/"}),
    ("brace in single quotes", "{'a': '}'}", {"a": "}"}),
    ("two: the last", "{'a': 1} {'b': 2}", B),
    ("prose with an apostrophe in braces", "{don't} {'b': 2}", B),
    ("none beside a strict one", "{\"b\": 2} {'a': 1}", B),
    ("thinking", "<think>{'a': 1}</think>{'b': 2}", B),
    ("cut off", "{'a': {'b': 2}", None),
    ("missing comma", "{'a': 1 'b': 2}", None),
    ("strings side by side", "{'a': 'x' 'y'}", None),
    ("numbers side by side", "{'a': 1 2}", None),
    ("comma alone", "{,}", None),
    ("comma alone in a list", "{'a': [,]}", None),
    ("two commas", "{'a': 1,,}", None),
    ("brackets crossed", "{'a': [1}]", None),
    ("bare value", "{a: x}", None),
    ("undefined", "{a: undefined}", None),
    ("hexadecimal", "{a: 0x10}", None),
    ("sum", "{a: 1 + 1}", None),
    ("function call", "{'a': dict(b=2)}", None),
    ("key twice", "{'a': 1, a: 2}", None),
    ("not a number", "{a: NaN}", None),
    ("comment never closed inside", "{'a': 1, /* } {'b': 2}", None),
]
"""The same in the spelling of JavaScript and Python, which is read where there is no other."""


def decoded(text: str) -> dict[str, Any] | None:
    try:
        return decode_json(text)
    except DecisionError:
        return None


def test_decode():
    wrong = [name for name, text, expected in (*CASES, *LOOSE) if decoded(text) != expected]
    assert wrong == []


def test_no_cut_makes_another_object_of_it():
    """Wherever a text breaks off, each of its objects is there as a whole or not at all."""
    for name, text, expected in LOOSE:
        if expected:
            assert all(decoded(text[:end]) in (None, expected, A) for end in range(len(text))), name


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
