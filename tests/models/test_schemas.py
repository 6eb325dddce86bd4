from typing import Any

import pytest

from packetgate.models.schemas import map_schema, with_moved_references


def a(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


REBASED = {
    "itself": ({"$ref": "#"}, {"$ref": "#/$defs/t"}),
    "a definition": (
        {**a(x={"$ref": "#/$defs/X"}), "$defs": {"X": {"items": {"$ref": "#/$defs/X"}}}},
        {**a(x={"$ref": "#/$defs/t/$defs/X"}), "$defs": {"X": {"items": {"$ref": "#/$defs/t/$defs/X"}}}},
    ),
    "elsewhere": ({"$ref": "https://example.org/x#/a"}, {"$ref": "https://example.org/x#/a"}),
    "a property of that name": (a(**{"$ref": {"$ref": "#"}}), a(**{"$ref": {"$ref": "#/$defs/t"}})),
    "data": ({"const": {"$ref": "#"}}, {"const": {"$ref": "#"}}),
    "an address of its own": ({"$id": "https://example.org/x", "$ref": "#/a"}, {"$ref": "#/$defs/t/a"}),
    "no schema": (False, False),
    "no reference": ({"$ref": 5}, {"$ref": 5}),
}


@pytest.mark.parametrize(("schema", "result"), REBASED.values(), ids=REBASED)
def test_references_are_moved(schema: Any, result: Any):
    assert with_moved_references(schema, "#/$defs/t") == result


def test_only_schemas_are_mapped():
    inner = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
    single = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
    listed = ("allOf", "anyOf", "oneOf", "prefixItems")
    schema = {
        **{key: {"name": {"seen": key}} for key in inner},
        **{key: {"seen": key} for key in single},
        **{key: [{"seen": key}] for key in listed},
        **{key: {"seen": key} for key in ("const", "default", "x-other")},
        "enum": [{"seen": "enum"}],
    }
    seen: list[str] = []

    def look(one: dict[str, Any]) -> dict[str, Any]:
        seen.append(one.get("seen", "whole"))
        return one

    assert map_schema(schema, look) == schema
    assert sorted(seen) == sorted([*inner, *single, *listed, "whole"])
    assert seen[-1] == "whole"
