"""Schemas that nothing fits are found out, and no other one is ever taken for one."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema_rs import ValidationError, validator_for
from support.tricky_schemas import SCHEMAS

from packetgate.tools.checks.satisfiable import why_never

S, WHOLE = {"type": "string"}, {"type": "integer"}
NODE = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}, "required": ["next"]}


def needs(schema: Any, **beside: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": schema}, "required": ["a"], **beside}


NEVER: dict[str, tuple[dict[str, Any], str]] = {
    "values of another type": (needs({"type": "integer", "enum": ["low", "high"]}), "`a` can be none of the values"),
    "a constant of another type": (needs({"type": "string", "const": 5}), "`a` can be none of the values"),
    "values out of bounds": (needs({"enum": [1, 2], "minimum": 3}), "`a` can be none of the values"),
    "crossed bounds": (needs({"type": "integer", "minimum": 5, "maximum": 3}), "`a` must lie between 5 and 3"),
    "no whole number": (needs({"type": "integer", "minimum": 1.2, "maximum": 1.8}), "lie between 1.2 and 1.8"),
    "bounds that exclude": (needs({"type": "number", "minimum": 1, "exclusiveMaximum": 1}), "lie between 1 and 1"),
    "crossed lengths": (needs({**S, "minLength": 3, "maxLength": 2}), "`a` must have at least 3 and at most 2 charac"),
    "crossed counts": (needs({"type": "array", "minItems": 2, "maxItems": 1}), "at most 1 entries"),
    "false": (needs(False), "`a` may not be there"),
    "closed inside": (needs({"type": "object", "required": ["b"], "additionalProperties": False}), "`a.b` may not be"),
    "no object": ({"type": "string"}, "the arguments cannot be object"),
    "two types": (needs({"allOf": [S, WHOLE]}), "`a` cannot be"),
    "a part that never fits": (needs({"allOf": [{"type": "integer", "minimum": 2, "maximum": 1}]}), "between 2 and 1"),
    "no way": (needs({"anyOf": [False, {**S, "enum": [1]}]}), "`a` may not be there"),
    "not anything": (needs({"not": {}}), "nothing at all"),
    "entries that never fit": (needs({"type": "array", "minItems": 1, "items": False}), "`a[]` may not be"),
    "a reference to it": (needs({"$ref": "#/$defs/x"}, **{"$defs": {"x": {**S, "enum": [1]}}}), "none of the values"),
    "itself without end": (needs({"$ref": "#"}), "without end"),
    "a chain without end": (needs({"$ref": "#/$defs/node"}, **{"$defs": {"node": NODE}}), "without end"),
}


@pytest.mark.parametrize("name", NEVER)
def test_what_nothing_fits_is_told(name: str):
    schema, reason = NEVER[name]
    assert reason in why_never(schema)


MAYBE: dict[str, dict[str, Any]] = {
    **SCHEMAS,
    "optional, and false": {"type": "object", "properties": {"a": False}},
    "recursive, with an end": needs(
        {"$ref": "#/$defs/x"}, **{"$defs": {"x": {"anyOf": [needs({"$ref": "#/$defs/x"}), {"type": "null"}]}}}
    ),
    "itself, or nothing": {"anyOf": [needs({"$ref": "#"}), {"type": "null"}, {"type": "object", "maxProperties": 0}]},
    "a list of itself": needs({"type": "array", "items": {"$ref": "#"}}),
    "crossed, of a kind that need not be": needs({"minLength": 3, "maxLength": 2}),
    "beside a reference": needs({"$ref": "#/$defs/x", "enum": []}, **{"$defs": {"x": S}}),
    "a reference to itself": needs({"$ref": "#/$defs/x"}, **{"$defs": {"x": {"$ref": "#/$defs/x"}}}),
    "an address of its own": needs({"$id": "https://example.org/x", "$ref": "#"}),
}


@pytest.mark.parametrize("name", MAYBE)
def test_what_may_fit_stays(name: str):
    assert why_never(MAYBE[name]) == ""


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "ab", 0.5, 1.0]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=5,
)
KIND = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])
SMALL = st.integers(0, 2)


def keywords(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(
        {},
        optional={
            "type": KIND | st.lists(KIND, min_size=1, max_size=2, unique=True),
            "enum": st.lists(VALUES, min_size=1, max_size=3),
            "const": VALUES,
            **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), st.integers(-2, 2)),
            **dict.fromkeys(
                ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), SMALL
            ),
            "properties": st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
            "required": st.lists(st.sampled_from("ab"), max_size=2, unique=True),
            "additionalProperties": inner,
            "items": inner,
            "prefixItems": st.lists(inner, min_size=1, max_size=2),
            **dict.fromkeys(("allOf", "anyOf", "oneOf"), st.lists(inner, min_size=1, max_size=2)),
            "not": inner,
            "$ref": st.sampled_from(["#", "#/$defs/x"]),
        },
    )


INNER = st.recursive(st.booleans() | keywords(st.just(True)), keywords, max_leaves=6)


@settings(max_examples=300, deadline=None)
@given(st.builds(lambda root, x: {**root, "$defs": {"x": x}}, keywords(INNER), INNER), st.lists(VALUES, max_size=4))
def test_nothing_fits_what_nothing_is_said_to_fit(schema: dict[str, Any], values: list[Any]):
    reason = why_never(schema)
    if not reason:
        return
    tried = [{}, {"a": 1}, {"a": "a", "b": None}, {"a": [], "b": {}}, *({"a": one} for one in values), *values]
    checking = validator_for(schema)
    for value in tried:
        try:
            checking.validate(value)
        except (ValidationError, ValueError):
            continue
        assert not isinstance(value, dict), (reason, value)
