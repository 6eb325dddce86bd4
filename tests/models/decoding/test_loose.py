"""JSON in the spelling of JavaScript and Python is read where there is no other; what is broken stays broken."""

from dataclasses import dataclass
from typing import Any

import pytest

from packetgate.models.decoding.decode import decode_json
from packetgate.state.errors import DecisionError


@dataclass(frozen=True)
class Case:
    id: str
    text: str
    expected: dict[str, Any] | None
    """None: there is no answer in it."""


A, B = {"a": 1}, {"b": 2}

LOOSE = [
    Case("trailing comma", '{"a": 1,}', A),
    Case("trailing comma in a list", '{"a": [1, 2,],}', {"a": [1, 2]}),
    Case("single quotes", "{'a': 'x'}", {"a": "x"}),
    Case("double quote in single quotes", "{'a': 'say \"x\"'}", {"a": 'say "x"'}),
    Case("single quote escaped", r"{'a': 'it\'s'}", {"a": "it's"}),
    Case("single quote needlessly escaped", r"""{"a": "it\'s"}""", {"a": "it's"}),
    Case("other escapes stay", r"{'a': '\n\u00e9\\'}", {"a": "\né\\"}),
    Case("bare keys", "{a: 1}", A),
    Case("Python's words", "{'a': [True, False, None]}", {"a": [True, False, None]}),
    Case("Python's words in a string", "{'a': 'True, None'}", {"a": "True, None"}),
    Case("line comment", '{"a": 1 // one: {"b": 2}\n}', A),
    Case("block comment", '{/* {"b": 2} */ "a": 1}', A),
    Case("comment marks in a string", "{'a': 'http://x/*y*/'}", {"a": "http://x/*y*/"}),
    Case("brace in single quotes", "{'a': '}'}", {"a": "}"}),
    Case("two: the last", "{'a': 1} {'b': 2}", B),
    Case("prose with an apostrophe in braces", "{don't} {'b': 2}", B),
    Case("none beside a strict one", "{\"b\": 2} {'a': 1}", B),
    Case("thinking", "<think>{'a': 1}</think>{'b': 2}", B),
    Case("cut off", "{'a': {'b': 2}", None),
    Case("missing comma", "{'a': 1 'b': 2}", None),
    Case("strings side by side", "{'a': 'x' 'y'}", None),
    Case("numbers side by side", "{'a': 1 2}", None),
    Case("comma alone", "{,}", None),
    Case("comma alone in a list", "{'a': [,]}", None),
    Case("two commas", "{'a': 1,,}", None),
    Case("brackets crossed", "{'a': [1}]", None),
    Case("bare value", "{a: x}", None),
    Case("undefined", "{a: undefined}", None),
    Case("hexadecimal", "{a: 0x10}", None),
    Case("sum", "{a: 1 + 1}", None),
    Case("function call", "{'a': dict(b=2)}", None),
    Case("key twice", "{'a': 1, a: 2}", None),
    Case("not a number", "{a: NaN}", None),
    Case("comment never closed inside", "{'a': 1, /* } {'b': 2}", None),
]


@pytest.mark.parametrize("case", LOOSE, ids=lambda case: case.id)
def test_decode(case: Case):
    if case.expected is None:
        with pytest.raises(DecisionError):
            decode_json(case.text)
    else:
        assert decode_json(case.text) == case.expected


@pytest.mark.parametrize("case", [case for case in LOOSE if case.expected], ids=lambda case: case.id)
def test_no_cut_makes_another_object_of_it(case: Case):
    """Wherever a text breaks off, each of its objects is there as a whole or not at all."""
    for end in range(len(case.text)):
        try:
            found = decode_json(case.text[:end])
        except DecisionError:
            continue
        assert found in (case.expected, A)
