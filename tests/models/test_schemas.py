from dataclasses import dataclass
from typing import Any

import pytest

from packetgate.models.schemas import map_schema, with_moved_references


def a(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@dataclass(frozen=True)
class Case:
    schema: Any
    result: Any


REBASED = {
    "itself": Case({"$ref": "#"}, {"$ref": "#/$defs/t"}),
    "a definition": Case(
        {**a(x={"$ref": "#/$defs/X"}), "$defs": {"X": {"items": {"$ref": "#/$defs/X"}}}},
        {**a(x={"$ref": "#/$defs/t/$defs/X"}), "$defs": {"X": {"items": {"$ref": "#/$defs/t/$defs/X"}}}},
    ),
    "elsewhere": Case({"$ref": "https://example.org/x#/a"}, {"$ref": "https://example.org/x#/a"}),
    "a property of that name": Case(a(**{"$ref": {"$ref": "#"}}), a(**{"$ref": {"$ref": "#/$defs/t"}})),
    "data": Case({"const": {"$ref": "#"}}, {"const": {"$ref": "#"}}),
    "an address of its own": Case({"$id": "https://example.org/x", "$ref": "#/a"}, {"$ref": "#/$defs/t/a"}),
    "a property named so": Case(a(**{"$id": {}}), a(**{"$id": {}})),
    "no schema": Case(False, False),
    "no reference": Case({"$ref": 5}, {"$ref": 5}),
}


@pytest.mark.parametrize("case", REBASED.values(), ids=REBASED)
def test_references_are_moved(case: Case):
    assert with_moved_references(case.schema, "#/$defs/t") == case.result


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
