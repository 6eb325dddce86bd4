from typing import Any

from packetgate.models.schemas import map_schema


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
