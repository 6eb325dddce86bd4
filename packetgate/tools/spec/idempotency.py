"""Keys by which a server tells that a call is another attempt at one it has had.

Every call carries its key in `_meta`, under `META`. A tool that has a parameter for one gets it there as well.
"""

from collections.abc import Mapping
from typing import Any

META = "packetgate/idempotency-key"
_NAMES = frozenset({"idempotencykey", "xidempotencykey"})


def key_parameter(parameters: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Return the parameter that takes a key, by its name and as it takes text; None where there is none."""
    return next((name for name, schema in parameters.items() if _is_for_keys(name) and _takes_text(schema)), None)


def without_duty(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a tool's schema such that nobody else has to give the key. Servers may publish any nonsense."""
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, dict) or not isinstance(required, list):
        return schema
    name = key_parameter({key: value for key, value in properties.items() if isinstance(value, dict)})
    return {**schema, "required": [one for one in required if one != name]} if name in required else schema


def with_key(params: Mapping[str, Any], parameters: Mapping[str, Mapping[str, Any]], key: str) -> dict[str, Any]:
    """Return the arguments with the key where the tool has a parameter for it, and nobody gave another."""
    name = key_parameter(parameters)
    return {**params, name: key} if name and key and not params.get(name) else {**params}


def _is_for_keys(name: str) -> bool:
    return name.lower().replace("_", "").replace("-", "") in _NAMES


def _takes_text(schema: Mapping[str, Any]) -> bool:
    options = schema.get("anyOf")
    parts = [schema, *(one for one in (options if isinstance(options, list) else []) if isinstance(one, dict))]
    kinds = [one.get("type") for one in parts]
    return any(kind == "string" or (isinstance(kind, list) and "string" in kind) for kind in kinds)
