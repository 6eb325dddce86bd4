"""Tools whose schemas each use one of the JSON Schema features of real servers."""

from typing import Any

S, N, WHOLE, B = {"type": "string"}, {"type": "number"}, {"type": "integer"}, {"type": "boolean"}


def _obj(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


POINT = _obj(x=N, y=N)

SCHEMAS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "no_parameters": {"type": "object"},
    "no_properties": {"type": "object", "properties": {}},
    "text": _obj(text=S),
    "optional": {"type": "object", "properties": {"a": S, "b": WHOLE, "c": B}},
    "closed": {**_obj(a=S), "additionalProperties": False},
    "open": {**_obj(a=S), "additionalProperties": True},
    "open_to_numbers": {**_obj(a=S), "additionalProperties": N},
    "untyped_value": _obj(value={"description": "anything"}),
    "anything_at_all": _obj(value=True),
    "nested": _obj(shape=_obj(corner=POINT, sizes={"type": "array", "items": N})),
    "array_of_objects": _obj(points={"type": "array", "items": POINT, "minItems": 1}),
    "bounded_array": _obj(items={"type": "array", "items": WHOLE, "minItems": 2, "maxItems": 3}),
    "tuple": _obj(pair={"type": "array", "prefixItems": [S, WHOLE], "items": False, "minItems": 2}),
    "untyped_array": _obj(items={"type": "array"}),
    "enumeration": _obj(unit={"enum": ["metric", "imperial", "größe", "🙂"]}),
    "mixed_enumeration": _obj(level={"enum": [1, 2.5, "three", None, True]}),
    "constant": _obj(kind={"const": "fixed"}),
    "several_types": _obj(value={"type": ["string", "null", "integer"]}),
    "any_of": _obj(target={"anyOf": [POINT, S, {"type": "null"}]}),
    "any_of_required": {
        "type": "object",
        "properties": {"id": S, "name": S},
        "anyOf": [{"required": ["id"]}, {"required": ["name"]}],
    },
    "one_of": _obj(target={"oneOf": [{"type": "integer"}, {"type": "string"}]}),
    "all_of": _obj(both={"allOf": [_obj(a=S), _obj(b=WHOLE)]}),
    "reference": {**_obj(at={"$ref": "#/$defs/point"}), "$defs": {"point": POINT}},
    "old_reference": {**_obj(at={"$ref": "#/definitions/point"}), "definitions": {"point": POINT}},
    "recursive": {
        **_obj(tree={"$ref": "#/$defs/node"}),
        "$defs": {"node": {**_obj(name=S), "properties": {"name": S, "next": {"$ref": "#/$defs/node"}}}},
    },
    "root_reference": {"$ref": "#/$defs/point", "$defs": {"point": POINT}},
    "formats": _obj(
        day={"type": "string", "format": "date"},
        at={"type": "string", "format": "date-time"},
        page={"type": "string", "format": "uri"},
        who={"type": "string", "format": "email"},
        key={"type": "string", "format": "uuid"},
    ),
    "unknown_format": _obj(file={"type": "string", "format": "binary"}),
    "pattern": _obj(code={"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3}$"}),
    "loose_pattern": _obj(code={"type": "string", "pattern": "[a-z]+"}),
    "lookaround": _obj(code={"type": "string", "pattern": "^(?=.*[0-9]).+$"}),
    "lengths": _obj(name={"type": "string", "minLength": 3, "maxLength": 5}),
    "ranges": _obj(month={"type": "integer", "minimum": 1, "maximum": 12}, share={**N, "minimum": 0, "maximum": 1}),
    "open_ranges": _obj(over={**N, "exclusiveMinimum": 0}, under={**WHOLE, "exclusiveMaximum": 0}),
    "multiples": _obj(dozens={"type": "integer", "multipleOf": 12, "minimum": 0, "maximum": 120}),
    "negation": _obj(value={"not": {"type": "string"}}),
    "unique_items": _obj(tags={"type": "array", "items": {"enum": ["a", "b", "c"]}, "uniqueItems": True}),
    "map": _obj(labels={"type": "object", "additionalProperties": S}),
    "pattern_properties": {"type": "object", "patternProperties": {"^x-": S}},
    "awkward_names": _obj(**{"$ref": S, "properties": WHOLE, "type": S, "a/b~c": S, "größe": N, "with space": B}),
    "not_a_schema": _obj(value="string"),
    "required_unknown": {"type": "object", "properties": {"a": S}, "required": ["b"]},
    "unknown_type": _obj(value={"type": "any"}),
    "draft_four": {"$schema": "http://json-schema.org/draft-04/schema#", **_obj(n={**WHOLE, "minimum": 0})},
}
"""Schemas by the tool's name."""
