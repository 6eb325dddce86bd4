import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from support.grammar_walk import RandomWriter

from packetgate.models.llama.grammar import COMPILED
from packetgate.models.llama.weights import LlamaWeights
from packetgate.models.schemas import CONFIDENCE, AnswerForm, obj, text
from packetgate.state.errors import DecisionError

INT = {"type": "integer"}
TREE = {
    "type": "object",
    "properties": {"name": text(5), "children": {"type": "array", "items": {"$ref": "#"}, "maxItems": 2}},
    "required": ["name"],
}


@pytest.fixture(scope="module")
def writer(tiny_gguf: Path) -> RandomWriter:
    return RandomWriter(LlamaWeights(str(tiny_gguf), {}))


def with_part(part: Any, **parts: Any) -> AnswerForm:
    return AnswerForm("test", obj(x={"$ref": "#/$defs/part"}), {"part": part, **parts})


TRICKY: dict[str, dict[str, Any]] = {
    "texts": obj(a={"type": "string"}, b=text(0), c={"type": "string", "minLength": 3, "maxLength": 4}),
    "numbers": obj(a={"type": "number"}, b=INT, c={"type": "number", "exclusiveMinimum": 0, "maximum": 1}),
    "large numbers": obj(a={"type": "integer", "minimum": 2**60}, b={"type": "integer", "const": 2**62}),
    "lists": obj(a={"type": "array", "items": INT, "minItems": 20}, b={"type": "array", "items": CONFIDENCE}),
    "optional": {"type": "object", "properties": {"a": INT, "b": text(3), "c": {"type": "null"}}, "required": ["b"]},
    "a map": {"type": "object", "additionalProperties": INT, "maxProperties": 3},
    "no properties": {"type": "object", "properties": {}},
    "named like keywords": obj(**{"$ref": INT, "properties": INT, "type": INT, "enum": INT}),
    "Chinese": obj(工具={"enum": ["读文件", "写文件"]}, mood={"enum": ["🙂", "🙃", "é", "\\", '"', "\n"]}),
    "values": obj(a={"enum": [1, 1.5, None, True, "x", {"type": "string"}, [1, 2]]}, b={"const": {"c": [1]}}),
    "ways": {"anyOf": [obj(kind={"const": "a"}, a=INT), obj(kind={"const": "b"}, b=text(4))]},
    "ways beside properties": {
        "type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"],
        "anyOf": [{"properties": {"b": INT}, "required": ["b"]}, {"properties": {"c": text(4)}, "required": ["c"]}],
    },
    "parts of one": {
        "allOf": [
            {"type": "object", "properties": {"a": INT}, "required": ["a"]},
            {"type": "object", "properties": {"b": INT}, "required": ["b"]},
        ]
    },
    "required, and not listed": {"type": "object", "properties": {"a": INT}, "required": ["a", "b"]},
    "maybe": obj(a={"type": ["string", "null"], "maxLength": 4}, b={"anyOf": [{"$ref": "#/$defs/X"}, {"type": "null"}]})
    | {"$defs": {"X": obj(y={"$ref": "#/$defs/Y"}), "Y": {"type": "boolean"}}},
    "itself": TREE,
    "definitions that refer to each other": {
        "$ref": "#/definitions/A",
        "definitions": {
            "A": {"type": "object", "properties": {"b": {"$ref": "#/definitions/B"}}, "required": ["b"]},
            "B": {"type": "array", "items": {"$ref": "#/definitions/A"}, "maxItems": 1},
        },
    },
    "an address of its own": {"$id": "https://example.org/x", "$ref": "#/$defs/X", "$defs": {"X": obj(a=INT)}},
    "formats": obj(a={"type": "string", "format": "date"}, b={"type": "string", "pattern": "^[a-c]{2,5}$"}),
    "steps": obj(a={"type": "number", "multipleOf": 0.01, "minimum": 0}, b={"type": "integer", "multipleOf": 5}),
}  # fmt: skip
OPEN = ("ways beside properties", "parts of one", "required, and not listed")
"""These may have properties that nothing describes."""


@pytest.mark.parametrize("name", TRICKY)
def test_whatever_is_written_is_valid(writer: RandomWriter, name: str):
    form = with_part(TRICKY[name])
    assert writer.grammars.grammar(form).widened == ()
    validator = jsonschema_rs.validator_for(TRICKY[name])
    for seed in range(6):
        written = writer.write(form, seed).decode()
        values = json.loads(written)["x"]
        validator.validate(values)
        assert not any(ord(character) < 32 for character in written)
        if name not in OPEN:
            assert "inf" not in repr(values)


UNHELD = {
    "not an object or boolean": "string",
    "false": False,
    "an unknown type": {"type": "any"},
    "a type that is none": obj(a={"type": 5}),
    "a reference elsewhere": {"$ref": "https://example.org/x.json"},
    "a reference to nothing": {"$ref": "#/$defs/none"},
    "a reference to an anchor": {"$ref": "#here", "$defs": {"a": {"$anchor": "here", "type": "integer"}}},
    "an unusual place": {"$ref": "#/other/X", "other": {"X": {"items": {"$ref": "#/other/Y"}}, "Y": INT}},
    "contradicting limits": {"type": "integer", "minimum": 5, "maximum": 4},
    "half a surrogate pair": obj(a={"const": "\ud800"}),
    "too deep": json.loads('{"items":' * 200 + "{}" + "}" * 200),
}


@pytest.mark.parametrize("part", UNHELD.values(), ids=UNHELD)
def test_parts_that_no_grammar_can_hold_take_any_object(writer: RandomWriter, part: Any):
    form = with_part(part, held=obj(a=INT))
    form.body["properties"]["y"] = {"$ref": "#/$defs/held"}
    form.body["required"].append("y")
    assert writer.grammars.grammar(form).widened == ("part",)
    assert writer.takes(form, '{"x":{"any":[1,{"thing":null}]},"y":{"a":5}}')
    assert not writer.starts(form, '{"x":5')
    assert not writer.starts(form, '{"x":{},"y":{"b"')


@pytest.mark.parametrize(
    "part",
    [
        obj(a={"type": "string", "pattern": "^(?=a)b"}, b=INT),
        obj(a={"type": "string", "pattern": "("}, b=INT),
        obj(a={"$ref": "#/$defs/text", "type": "string"}, b=INT) | {"$defs": {"text": {"type": "string"}}},
        {"type": "object", "properties": {"a": {"$ref": "#", "type": "object"}, "b": INT}, "required": ["b"]},
    ],
)
def test_a_keyword_that_no_grammar_can_hold_leaves_the_rest_of_its_part(writer: RandomWriter, part: Any):
    form = with_part(part)
    writer.grammars.grammar(form)
    a = '{"b":2}' if "$ref" in str(part["properties"]["a"]) and "$defs" not in part else '"x"'
    assert writer.takes(form, f'{{"x":{{"a":{a},"b":1}}}}')
    assert not writer.starts(form, f'{{"x":{{"a":{a},"b":"')


@pytest.mark.parametrize("keyword", [{"not": {"required": ["b"]}}, {"if": {}, "then": {}}, {"uniqueItems": True}])
def test_keywords_that_no_grammar_knows_are_left_to_validation(writer: RandomWriter, keyword: dict[str, Any]):
    form = with_part({"type": "object", "properties": {"a": INT}, "required": ["a"], **keyword})
    assert writer.grammars.grammar(form).widened == ("part",)
    assert writer.takes(form, '{"x":{"a":1}}')
    assert not writer.starts(form, '{"x":{"a":"')


def test_every_part_refers_to_itself(writer: RandomWriter):
    leaf = {"$ref": "#/$defs/leaf", "$defs": {"leaf": INT}}
    form = AnswerForm(
        "test",
        obj(one={"$ref": "#/$defs/one"}, two={"$ref": "#/$defs/two"}),
        {"one": TREE, "two": {"type": "array", "items": leaf | {"$defs": {"leaf": {"type": "null"}}}, **leaf["$defs"]}},
    )
    assert writer.grammars.grammar(form).widened == ("two",)
    assert writer.takes(form, '{"one":{"name":"a","children":[{"name":"b","children":[]}]},"two":{}}')
    assert not writer.starts(form, '{"one":{"name":"a","children":[{"one"')


def test_a_palette_is_compiled_once_until_others_were_used_since(writer: RandomWriter, monkeypatch: pytest.MonkeyPatch):
    compile_form, compiled = writer.grammars._compile, []
    monkeypatch.setattr(writer.grammars, "_compile", lambda form: compiled.append(form) or compile_form(form))

    def use(*names: str) -> list[AnswerForm]:
        """Return the forms that had to be compiled."""
        compiled.clear()
        for name in names:
            writer.grammars.grammar(with_part(obj(a={"const": name})))
        return [*compiled]

    others = [f"other {at}" for at in range(COMPILED - 1)]
    assert len(use("once", "once", "once")) == 1
    assert len(use(*others)) == len(others)
    assert use("once") == []
    assert len(use("one more", "once", others[0])) == 2


def test_answers_to_one_form_do_not_meet(writer: RandomWriter):
    form = AnswerForm("test", obj(a=INT, b=INT))
    first, second = (writer.grammars.grammar(form).matcher for _ in range(2))
    assert first.try_consume_tokens(writer.tokens('{"a":1,"b"')) == 10
    assert second.try_consume_tokens(writer.tokens('{"a":')) == 5
    assert first.try_consume_tokens(writer.tokens(":2}")) == 3
    assert (first.is_stopped(), second.is_stopped()) == (True, False)
    assert writer.takes(form, '{"a":1,"b":2}')


def test_keys_stand_in_the_order_of_the_form(writer: RandomWriter):
    one, other = AnswerForm("test", obj(a=INT, b=INT)), AnswerForm("test", obj(b=INT, a=INT))
    assert [writer.takes(form, '{"a":1,"b":2}') for form in (one, other)] == [True, False]
    assert [writer.takes(form, '{"b":1,"a":2}') for form in (one, other)] == [False, True]


def test_a_form_that_itself_cannot_be_held(writer: RandomWriter):
    with pytest.raises(DecisionError, match="no grammar can hold odd: "):
        writer.grammars.grammar(AnswerForm("odd", {"type": "any"}))
