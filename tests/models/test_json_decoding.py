from dataclasses import dataclass
from typing import Any

import pytest

from models.json_decoding import decode_json, find_json_objects
from state.errors import DecisionError


@dataclass(frozen=True)
class Case:
    id: str
    text: str
    expected: dict[str, Any] | None
    """None: there is no answer in it."""


A, B = {"a": 1}, {"b": 2}
CALL = {"tool": "fs.read", "params": {"path": "a{b}.txt", "deep": {"x": [{"y": "}"}]}}}

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
    Case("empty", "", None),
    Case("white space", " \n", None),
    Case("prose", "I would read the file.", None),
    Case("array", "[1, 2]", None),
    Case("number", "7", None),
    Case("string", '"{}"', {}),
    Case("truncated: not its inner object", '{"tool": "x", "params": {"a": 1}', None),
    Case("truncated in a string", '{"a": "one', None),
    Case("missing comma: not its inner object", '{"a": {"b": 2} "c": {"d": 3}}', None),
    Case("single quotes: not its inner object", "{'tool': 'x', 'params': {}}", None),
    Case("bare names: not its inner object", '{tool: "x", params: {}}', None),
    Case("trailing comma", '{"a": 1,}', None),
    Case("broken, then sound", '{"a": nope} {"b": 2}', B),
    Case("lone surrogate", r'{"a": "\ud800"}', None),
    Case("not a number", '{"a": NaN}', None),
    Case("infinite by overflow", '{"a": 1e999}', None),
    Case("number of too many digits", '{"a": ' + "9" * 5000 + "}", None),
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


def test_finds_every_outermost_object_in_order():
    assert find_json_objects('{"a": 1} and {"c": {"b": 2}} and {"b": 2}') == [A, {"c": B}, B]


def test_error_quotes_the_answer_shortened():
    with pytest.raises(DecisionError, match="no complete JSON object: 'blah blah") as caught:
        decode_json("blah " * 1000)
    assert len(str(caught.value)) < 250


def test_error_says_that_the_answer_is_empty():
    with pytest.raises(DecisionError, match="empty"):
        decode_json("  ")
