import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from support.grammar_walk import NAME, RandomWriter, call_of, text_schema

from packetgate.models.llama.grammar import LARGEST, MAX_ITEMS
from packetgate.models.llama.weights import LlamaWeights
from packetgate.models.schemas import object_schema

INT = {"type": "integer"}
CONFIDENCE = {"type": "number", "minimum": 0, "maximum": 1}
TREE = {
    "type": "object",
    "properties": {"name": text_schema(5), "children": {"type": "array", "items": {"$ref": "#"}, "maxItems": 2}},
    "required": ["name"],
}


@pytest.fixture(scope="module")
def writer(tiny_gguf: Path) -> RandomWriter:
    return RandomWriter(LlamaWeights(str(tiny_gguf), {}))


TRICKY: dict[str, dict[str, Any]] = {
    "texts": object_schema(a={"type": "string"}, b=text_schema(0), c={"type": "string", "minLength": 3,
        "maxLength": 4}),
    "numbers": object_schema(a={"type": "number"}, b=INT, c={"type": "number", "exclusiveMinimum": 0, "maximum": 1}),
    "lists": object_schema(a={"type": "array", "items": INT, "minItems": 20}, b={"type": "array", "items": CONFIDENCE}),
    "optional": {"type": "object", "properties": {"a": INT, "b": text_schema(3), "c": {"type": "null"}},
        "required": ["b"]},
    "a map": {"type": "object", "additionalProperties": INT, "maxProperties": 3},
    "Chinese": object_schema(工具={"enum": ["读文件", "写文件"]}, mood={"enum": ["🙂", "🙃", "é", "\\", '"', "\n"]}),
    "values": object_schema(a={"enum": [1, 1.5, None, True, "x", {"type": "string"}, [1, 2]]}, b={"const": {"c": [1]}}),
    "ways": {"anyOf": [object_schema(kind={"const": "a"}, a=INT), object_schema(kind={"const": "b"},
        b=text_schema(4))]},
    "ways beside properties": {
        "type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"],
        "anyOf": [{"properties": {"b": INT}, "required": ["b"]}, {"properties": {"c": text_schema(4)},
        "required": ["c"]}],
    },
    "required, and not listed": {"type": "object", "properties": {"a": INT}, "required": ["a", "b"]},
    "maybe": object_schema(a={"type": ["string", "null"], "maxLength": 4}, b={"anyOf": [{"$ref": "#/$defs/X"},
        {"type": "null"}]})
    | {"$defs": {"X": object_schema(y={"$ref": "#/$defs/Y"}), "Y": {"type": "boolean"}}},
    "itself": TREE,
    "definitions that refer to each other": {
        "$ref": "#/definitions/A",
        "definitions": {
            "A": {"type": "object", "properties": {"b": {"$ref": "#/definitions/B"}}, "required": ["b"]},
            "B": {"type": "array", "items": {"$ref": "#/definitions/A"}, "maxItems": 1},
        },
    },
    "formats": object_schema(a={"type": "string", "format": "date"}, b={"type": "string", "pattern": "^[a-c]{2,5}$"}),
}  # fmt: skip
OPEN = ("ways beside properties", "required, and not listed")
"""Schemas that allow properties without a description."""


@pytest.mark.parametrize("name", TRICKY)
def test_every_written_answer_is_valid(writer: RandomWriter, name: str):
    assert writer.grammars.grammar(call_of(TRICKY[name])).widened_tools == ()
    validator = jsonschema_rs.validator_for(TRICKY[name])
    for seed in range(6):
        written = writer.write(TRICKY[name], seed).decode()
        values = json.loads(written)
        validator.validate(values)
        assert not any(ord(character) < 32 for character in written)
        if name not in OPEN:
            assert "inf" not in repr(values)


UNSUPPORTED = {
    "an unknown type": {"type": "any"},
    "a type that is none": object_schema(a={"type": 5}),
    "a reference elsewhere": {"$ref": "https://example.org/x.json"},
    "a reference to nothing": {"$ref": "#/$defs/none"},
    "contradicting limits": {"type": "integer", "minimum": 5, "maximum": 4},
    "half a surrogate pair": object_schema(a={"const": "\ud800"}),
    "too deep": json.loads('{"items":' * 200 + "{}" + "}" * 200),
}


@pytest.mark.parametrize("part", UNSUPPORTED.values(), ids=UNSUPPORTED)
def test_parameters_without_a_grammar_accept_any_object(writer: RandomWriter, part: Any):
    assert writer.grammars.grammar(call_of(part)).widened_tools == (NAME,)
    assert writer.takes(part, '{"any":[1,{"thing":null}]}')
    assert not writer.starts(part, "5")


@pytest.mark.parametrize(
    "part",
    [
        object_schema(a={"type": "string", "pattern": "^(?=a)b"}, b=INT),
        object_schema(a={"type": "string", "pattern": "("}, b=INT),
        object_schema(a={"$ref": "#/$defs/text", "type": "string"}, b=INT) | {"$defs": {"text": {"type": "string"}}},
        {"type": "object", "properties": {"a": {"$ref": "#", "type": "object"}, "b": INT}, "required": ["b"]},
    ],
)
def test_an_unsupported_keyword_is_dropped_alone(writer: RandomWriter, part: Any):
    a = '{"b":2}' if "$ref" in str(part["properties"]["a"]) and "$defs" not in part else '"x"'
    assert writer.takes(part, f'{{"a":{a},"b":1}}')
    assert not writer.starts(part, f'{{"a":{a},"b":"')


@pytest.mark.parametrize("keyword", [{"not": {"required": ["b"]}}, {"if": {}, "then": {}}, {"uniqueItems": True}])
def test_unknown_keywords_are_left_to_validation(writer: RandomWriter, keyword: dict[str, Any]):
    part = {"type": "object", "properties": {"a": INT}, "required": ["a"], **keyword}
    assert writer.grammars.grammar(call_of(part)).widened_tools == (NAME,)
    assert writer.takes(part, '{"a":1}')
    assert not writer.starts(part, '{"a":"')


def test_concurrent_answers_have_separate_matchers(writer: RandomWriter):
    form = call_of(object_schema(a=INT, b=INT))
    first, second = (writer.grammars.grammar(form).matcher for _ in range(2))
    assert first.try_consume_tokens(writer.tokens('t{"a":1,"b"')) == 11
    assert second.try_consume_tokens(writer.tokens('t{"a":')) == 6
    assert first.try_consume_tokens(writer.tokens(":2}")) == 3
    assert (first.is_stopped(), second.is_stopped()) == (True, False)


def test_keys_are_in_the_order_of_the_schema(writer: RandomWriter):
    one, other = object_schema(a=INT, b=INT), object_schema(b=INT, a=INT)
    assert [writer.takes(part, '{"a":1,"b":2}') for part in (one, other)] == [True, False]
    assert [writer.takes(part, '{"b":1,"a":2}') for part in (one, other)] == [False, True]


A_LIST, OPEN_OBJECT = {"type": "array", "items": INT}, {"type": "object", "properties": {"a": INT}}


@pytest.mark.parametrize(
    ("part", "text", "taken"),
    [
        (object_schema(a=A_LIST), f'{{"a":[{",".join("1" * MAX_ITEMS)}]}}', True),
        (object_schema(a=A_LIST), f'{{"a":[{",".join("1" * (MAX_ITEMS + 1))}]}}', False),
        (object_schema(a={**A_LIST, "maxItems": 99}), f'{{"a":[{",".join("1" * 99)}]}}', True),
        (OPEN_OBJECT, '{"a":1,"b":2}', False),
        ({**OPEN_OBJECT, "additionalProperties": True}, '{"a":1,"b":2}', True),
        (object_schema(a={"enum": [[*range(99)]]}), f'{{"a":[{",".join(map(str, range(99)))}]}}', True),
        (object_schema(a={"type": "integer", "minimum": 3}), '{"a":2}', False),
    ],
)
def test_values_that_a_schema_leaves_open_have_limits(
    writer: RandomWriter, part: dict[str, Any], text: str, taken: bool
):
    assert writer.takes(part, text) is taken


NUMBERS = {
    "1e999": False,
    str(LARGEST): True,
    str(LARGEST + 1): False,
    str(-LARGEST): True,
    "0.123456789": True,
    "0.1234567891": False,
    "0." + "0" * 50: False,
    "-0.5": True,
    "NaN": False,
    "Infinity": False,
}


@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_are_bounded(writer: RandomWriter, number: str):
    assert writer.takes(object_schema(value={"type": "number"}), f'{{"value":{number}}}') == NUMBERS[number]


TEXTS = {
    "plain": True,
    "读 🙂 é": True,
    r"\n\t\"\\": True,
    "\n": False,
    "\x7f": False,
    r"\ud800": False,
    '"': False,
    "a" * 4000: True,
    "a" * 4001: False,
}


@pytest.mark.parametrize("inside", TEXTS, ids=[repr(one[:12]) for one in TEXTS])
def test_texts_are_json_strings(writer: RandomWriter, inside: str):
    assert writer.takes(object_schema(value={"type": "string"}), f'{{"value":"{inside}"}}') == TEXTS[inside]


def test_tokens_without_text_are_never_written(writer: RandomWriter):
    form = object_schema(t=text_schema(50))
    for begun in ('{"t":"', '{"t":"<', '{"t":"<unk', '{"t":"<s'):
        assert b"" not in writer.following(form, begun)
