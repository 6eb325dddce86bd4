"""Each family's markup is read into the same plain calls; what is broken or only thought of does not count."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from packetgate.models.decoding.call_forms import NativeCall
from packetgate.models.decoding.native_calls import read_answer
from packetgate.models.decoding.values import read_strict


@dataclass(frozen=True)
class Case:
    id: str
    text: str
    names: str = "x"
    """Of the calls; those that are called x have the argument a = 1."""


JSON = '{"name": "x", "arguments": {"a": 1}}'
NAMED = {"x": NativeCall("x", {"a": 1}), "y": NativeCall("y", {})}
SECOND = '{"name": "y", "arguments": {}}'
CALLS, END_CALLS, CALL, END_CALL, SEP = (
    f"<\uff5ctool\u2581{name}\uff5c>"
    for name in ("calls\u2581begin", "calls\u2581end", "call\u2581begin", "call\u2581end", "sep")
)

CASES = [
    Case("Hermes", f"<tool_call>\n{JSON}\n</tool_call>"),
    Case("Hermes, two", f"<tool_call>{JSON}</tool_call> and <tool_call>{SECOND}</tool_call>", "x y"),
    Case("Hermes, two in one", f"<tool_call>{JSON}\n{SECOND}</tool_call>", "x y"),
    Case("Hermes, never closed", f"<tool_call>{JSON}"),
    Case("Hermes, cut off", f"<tool_call>{JSON[:-1]}", ""),
    Case("Hermes, the second cut off", f"<tool_call>{JSON}\n{SECOND[:-1]}"),
    Case("Hermes, no name", '<tool_call>{"arguments": {}}</tool_call>', ""),
    Case("Hermes, no JSON", "<tool_call>x with a = 1</tool_call>", ""),
    Case("Hermes, no mark", JSON, ""),
    Case("Qwen 3 Coder", "<tool_call>\n<function=x>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>"),
    Case("Qwen 3 Coder, no parameters", "<function=y>\n</function>", "y"),
    Case("Qwen 3 Coder, cut off", "<function=x><parameter=a>1</parameter>", ""),
    Case("Qwen 3 Coder, parameter never closed", "<function=x><parameter=a>1</function>", ""),
    Case("Qwen 3 Coder, parameter twice", "<function=x>" + "<parameter=a>1</parameter>" * 2 + "</function>", ""),
    Case("Qwen 3 Coder, one inside the other", "<function=x><parameter=a><parameter=b>1</parameter></function>", ""),
    Case("Qwen 3 Coder, words between", "<function=x><parameter=a>1</parameter> and</function>", ""),
    Case("Llama 3", '<|python_tag|>{"name": "x", "parameters": {"a": 1}}<|eom_id|>'),
    Case("Llama 3, two", f"<|python_tag|>{JSON}; {SECOND}<|eot_id|>", "x y"),
    Case("Llama 3, Python", "<|python_tag|>x.call(a=1)"),
    Case("Llama 3, function", '<function=x>{"a": 1}</function>'),
    Case("Llama 3, function, cut off", '<function=x>{"a": 1', ""),
    Case("Mistral", f"[TOOL_CALLS][{JSON}, {SECOND}]", "x y"),
    Case("Mistral, list cut off", f"[TOOL_CALLS] [{JSON}, {SECOND[:-3]}", ""),
    Case("newer Mistral", '[TOOL_CALLS]x[ARGS]{"a": 1}[TOOL_CALLS]y[ARGS]{}', "x y"),
    Case("newer Mistral with an id", '[TOOL_CALLS]x[CALL_ID]9[ARGS]{"a": 1}'),
    Case("newer Mistral, cut off", '[TOOL_CALLS]x[ARGS]{"a": 1', ""),
    Case("GAIA", f"<|Start of Memory Helper Tool Call|>{JSON}<|End of Memory Helper Tool Call|>"),
    Case("GAIA, prose", "<|Start of Memory Helper Tool Call|>remember<|End of Memory Helper Tool Call|>", ""),
    Case("Granite", f"<|tool_call|>[{JSON}]"),
    Case("DeepSeek", f'{CALLS}{CALL}function{SEP}x\n```json\n{{"a": 1}}\n```{END_CALL}{END_CALLS}'),
    Case("newer DeepSeek", f'{CALLS}{CALL}x{SEP}{{"a": 1}}{END_CALL}{CALL}y{SEP}{{}}{END_CALL}{END_CALLS}', "x y"),
    Case("in a thought", f"<think><tool_call>{JSON}</tool_call></think>Hm.", ""),
    Case("last in a thought without an end", f"<think>so <tool_call>{JSON}</tool_call>"),
    Case("in an echo", f"<tool_response><tool_call>{JSON}</tool_call></tool_response>", ""),
    Case("in a string of an object", json.dumps({"reasoning": f"<tool_call>{JSON}</tool_call>"}), ""),
    Case("behind a lone brace", f"{{ <tool_call>{JSON}</tool_call>", ""),
    Case("nothing", "", ""),
]


def native_calls(text: str) -> tuple[NativeCall, ...]:
    found = [reading.value for reading in read_answer(text, read_strict)]
    return tuple(call for calls in found if isinstance(calls, tuple) for call in calls)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_family(case: Case):
    assert native_calls(case.text) == tuple(NAMED[name] for name in case.names.split())


@pytest.mark.parametrize("case", [case for case in CASES if case.names == "x"], ids=lambda case: case.id)
def test_no_cut_makes_another_call_of_it(case: Case):
    """Wherever a text breaks off, its call is there as a whole or not at all."""
    for end in range(len(case.text)):
        assert native_calls(case.text[:end]) in ((), (NAMED["x"],))


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
    (call,) = native_calls(f"<function=x><parameter=a>{written}</parameter></function>")
    assert call.arguments == {"a": value}
    assert type(call.arguments["a"]) is type(value)
