import pytest

from packetgate.tools.spec.descriptions import with_key, without_duty

TEXT = {"type": "string"}


@pytest.mark.parametrize("name", ["idempotency_key", "idempotencyKey", "Idempotency-Key", "x_idempotency_key"])
@pytest.mark.parametrize("schema", [TEXT, {"type": ["string", "null"]}, {"anyOf": [{"type": "null"}, TEXT]}])
def test_a_parameter_for_keys_gets_one(name: str, schema: dict[str, object]) -> None:
    assert with_key({"a": 1}, {"a": {}, name: schema}, "k") == {"a": 1, name: "k"}
    assert with_key({name: ""}, {name: schema}, "k") == {name: "k"}
    assert with_key({name: "mine"}, {name: schema}, "k") == {name: "mine"}


@pytest.mark.parametrize(("name", "schema"), [("key", TEXT), ("idempotency_key", {"type": "integer"}), ("a", {})])
def test_no_other_does(name: str, schema: dict[str, object]) -> None:
    assert with_key({"b": 1}, {name: schema}, "k") == {"b": 1}


def test_nobody_has_to_give_it() -> None:
    schema = {
        "type": "object",
        "properties": {"to": TEXT, "idempotencyKey": TEXT},
        "required": ["to", "idempotencyKey"],
    }
    assert without_duty(schema)["required"] == ["to"]
    assert schema["required"] == ["to", "idempotencyKey"]


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"properties": [], "required": ["idempotency_key"]},
        {"properties": {"idempotency_key": True}, "required": ["idempotency_key"]},
        {"properties": {"idempotency_key": TEXT}, "required": "idempotency_key"},
        {"properties": {"to": TEXT}, "required": ["to"]},
        {"properties": {"idempotency_key": {"type": "string", "anyOf": 3}}, "required": [["idempotency_key"]]},
        {"properties": {"idempotency_key": {"anyOf": 3, "type": {}}}, "required": ["idempotency_key"]},
    ],
)
def test_any_other_schema_is_left_as_it_is(schema: dict[str, object]) -> None:
    assert without_duty(schema) == schema
