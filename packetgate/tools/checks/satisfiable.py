"""Whether a tool's schema lets any call through: one that cannot be called only misleads who chooses."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeGuard
from urllib.parse import unquote

from jsonschema_rs import Validator, validator_for

KINDS = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})
MAX_STEPS, MAX_DEPTH = 20_000, 60
"""Of looking: a schema beyond them counts as satisfiable."""
_PLAIN = frozenset(
    {"type", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength"}
) | {"maxLength", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties"}
"""Keywords that any value must fit, whatever stands beside them."""
_SIZES = {
    "string": ("minLength", "maxLength", "characters"),
    "array": ("minItems", "maxItems", "entries"),
    "object": ("minProperties", "maxProperties", "properties"),
}


def why_never(schema: Mapping[str, Any]) -> str:
    """Return why no arguments fit a tool's schema; empty where some do, and where that is not certain.

    Only what every draft of JSON Schema says counts. A value that must hold itself is none: it has no end.
    """
    dialect = str(schema.get("$schema", ""))
    if any(draft in dialect for draft in ("draft-03", "draft-04")) or _moves(schema):
        return ""
    return _Search(schema).why(schema, frozenset({"object"}))


def _moves(schema: Any, depth: int = 0) -> bool:
    """Whether references may lead elsewhere than they seem to."""
    if depth > MAX_DEPTH:
        return True
    inner = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    return (depth > 0 and isinstance(schema, dict) and "$id" in schema) or any(_moves(one, depth + 1) for one in inner)


class _Looked(NamedTuple):
    """A schema that is being looked at."""

    schema: int
    wanted: frozenset[str]
    place: str


_Above = tuple[_Looked, ...]


class _Search:
    """Looks for what no value can fit. A reason is a proof; none is no proof of the contrary."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._steps = 0

    def why(self, schema: Any, wanted: frozenset[str], place: str = "", above: _Above = ()) -> str:
        """Return why nothing of the `wanted` kinds fits a schema."""
        self._steps += 1
        name = f"`{place}`" if place else "the arguments"
        if schema is False:
            return f"{name} may not be there"
        if not isinstance(schema, dict) or self._steps > MAX_STEPS or len(above) > MAX_DEPTH:
            return ""
        here = (id(schema), wanted)
        if met := [one for one in above if one[:2] == here]:
            return "" if met[-1].place == place else f"{name} must hold another one of its kind, without end"
        above = (*above, _Looked(*here, place))
        if "$ref" in schema:  # what stands beside it does not count in all drafts
            target = self._target(schema["$ref"])
            return "" if target is None else self.why(target, wanted, place, above)
        if schema.get("not") is True or schema.get("not") == {}:
            return f"{name} may be nothing at all"
        kinds = wanted & _kinds(schema)
        if not kinds:
            return f"{name} cannot be {' or '.join(sorted(wanted))}"
        reasons = (
            _of_values(schema, name),
            _of_limits(schema, kinds, name),
            self._of_ways(schema, kinds, place, above),
            self._of_properties(schema, place, above) if kinds == {"object"} else "",
            self._of_entries(schema, place, above) if kinds == {"array"} else "",
        )
        return next(filter(None, reasons), "")

    def _of_ways(self, schema: Mapping[str, Any], kinds: frozenset[str], place: str, above: _Above) -> str:
        every = schema.get("allOf")
        for one in every if isinstance(every, list) else ():
            if reason := self.why(one, kinds, place, above):
                return reason
        for key in ("anyOf", "oneOf"):
            some = schema.get(key)
            if isinstance(some, list) and some:
                reasons = [self.why(one, kinds, place, above) for one in some]
                if all(reasons):
                    return reasons[0]
        return ""

    def _of_properties(self, schema: Mapping[str, Any], place: str, above: _Above) -> str:
        required, properties = schema.get("required"), schema.get("properties", {})
        if not isinstance(required, list) or not isinstance(properties, dict) or schema.get("patternProperties"):
            return ""
        for key in required:
            others = True if schema is self._root else schema.get("additionalProperties", True)
            inner = properties.get(key, others) if isinstance(key, str) else True  # a call may always give what it must
            if reason := self.why(inner, KINDS, f"{place}.{key}".lstrip("."), above):
                return reason
        return ""

    def _of_entries(self, schema: Mapping[str, Any], place: str, above: _Above) -> str:
        least, items = schema.get("minItems"), schema.get("items")
        if not _is_number(least) or least < 1 or isinstance(items, list) or schema.get("prefixItems"):
            return ""
        return self.why(items, KINDS, f"{place}[]", above)

    def _target(self, reference: Any) -> Any:
        """Return what a reference within the schema leads to; None where that is not certain."""
        if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
            return None
        at: Any = self._root
        for part in unquote(reference).split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            at = at.get(key) if isinstance(at, dict) else None
        return at


def _kinds(schema: Mapping[str, Any]) -> frozenset[str]:
    """Return the kinds of values that the types of a schema and of all its parts let through."""
    parts = schema.get("allOf")
    kinds = KINDS
    for told in [schema.get("type"), *(one.get("type") for one in _plain_parts(parts))]:
        names = [told] if isinstance(told, str) else told if isinstance(told, list) else []
        if names and all(isinstance(name, str) and name in KINDS for name in names):
            kinds &= {*names} | ({"integer"} if "number" in names else set())
    return kinds


def _plain_parts(parts: Any) -> list[dict[str, Any]]:
    every = parts if isinstance(parts, list) else []
    return [one for one in every if isinstance(one, dict) and "$ref" not in one]


def _of_values(schema: Mapping[str, Any], name: str) -> str:
    """Compare the values that a schema lists with the rest of it."""
    if "const" not in schema and not isinstance(schema.get("enum"), list):
        return ""
    values = [schema["const"]] if "const" in schema else schema["enum"]
    plain = _checking({key: value for key, value in schema.items() if key in _PLAIN})
    if plain is None or any(plain.is_valid(value) for value in values):
        return ""
    return f"{name} can be none of the values that it lists"


def _checking(plain: dict[str, Any]) -> Validator | None:
    try:
        return validator_for(plain)
    except ValueError:
        return None


def _of_limits(schema: Mapping[str, Any], kinds: frozenset[str], name: str) -> str:
    if len(kinds) == 1 and (sizes := _SIZES.get(next(iter(kinds)))):
        low, high, what = sizes
        least, most = schema.get(low), schema.get(high)
        if _is_number(least) and _is_number(most) and least > most:
            return f"{name} must have at least {least} and at most {most} {what}"
    if kinds <= {"integer", "number"}:
        lows, highs = _bounds(schema, "inimum"), _bounds(schema, "aximum")
        if not lows or not highs:
            return ""
        (least, above), (most, included) = max(lows), min((value, not strict) for value, strict in highs)
        first, last = (math.ceil(least), math.floor(most)) if kinds == {"integer"} else (least, most)
        if first > last or (least == most and (above or not included)):
            return f"{name} must lie between {least} and {most}"
    return ""


def _bounds(schema: Mapping[str, Any], limit: str) -> list[tuple[float, bool]]:
    """Return the bounds of one side, and of each whether it is excluded."""
    given = [(schema.get(f"m{limit}"), False), (schema.get(f"exclusiveM{limit}"), True)]
    return [(value, strict) for value, strict in given if _is_number(value)]


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
