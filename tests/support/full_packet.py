"""A packet in which no field of any section has its default value."""

import re
import types
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from langchain_core.messages import AIMessage, HumanMessage
from pydantic import BaseModel, JsonValue
from pydantic.fields import FieldInfo

from packetgate.state.packet import CognitionPacket
from packetgate.state.sections import PACKET_VERSION

AT = datetime(2026, 2, 28, 23, 59, 59, 123456, tzinfo=UTC)
TEXT = 'quotes " and \\ and {braces}, Ünïcode, 漢字, 🚪, \t\n'
PATTERNED = ("kept:00ff", "image/png", "0f" * 32)
"""Values for fields with a pattern."""


def full_packet(text: str = TEXT) -> CognitionPacket:
    """Return the packet, with `text` in every field that accepts any text."""
    fields = vars(_filled(CognitionPacket, text)) | {
        "messages": [HumanMessage("write it", id="m1"), AIMessage("Done.", id="m2")]
    }
    return CognitionPacket.model_validate(fields)


def inside(value: Any) -> Iterator[Any]:
    """Yield a value and all nested values, depth first."""
    yield value
    if isinstance(value, BaseModel):
        inner: Any = (getattr(value, name) for name in type(value).model_fields)
    elif isinstance(value, Mapping):
        inner = value.values()
    else:
        inner = value if isinstance(value, list | tuple) else ()
    for one in inner:
        yield from inside(one)


def _filled(model: type[BaseModel], text: str) -> Any:
    values = {}
    for name, field in model.model_fields.items():
        default = field.get_default(call_default_factory=True, validated_data={})
        values[name] = () if name == "messages" else _limited(field.annotation, field.metadata, default, text)
    return model.model_validate(values | ({"version": PACKET_VERSION} if "version" in values else {}))


def _value(kind: Any, default: Any, text: str) -> Any:
    """Return a value of a type, other than the default."""
    origin, args = get_origin(kind), get_args(kind)
    if kind is JsonValue or kind is Any:
        deep = {"list": [1, None, True, {"": ""}], "empty": {}}
        return {text: text, "number": -1.5e-300, "big": 2**53, "deep": deep}
    if origin is Annotated:
        return _limited(args[0], args[1:], default, text)
    if origin in {Union, types.UnionType}:
        return _value(next(one for one in args if one is not type(None)), default, text)
    if origin is Literal:
        return next(one for one in args if one != default)
    if origin is tuple and args[-1] is not ...:
        return tuple(_value(one, None, text) for one in args)
    if origin in {tuple, list, frozenset}:
        return origin([_value(args[0], None, text)])
    if origin is dict:
        return {_value(args[0], None, text): _value(args[1], None, text)}
    if issubclass(kind, Enum):
        return next(one for one in kind if one != default)
    if issubclass(kind, BaseModel):
        return _filled(kind, text)
    plain = {bool: not default, int: 7, float: 0.1 + 0.2, datetime: AT, str: text, dict: {"type": text}}
    return plain[kind]


def _limited(kind: Any, limits: Iterable[Any], default: Any, text: str) -> Any:
    """Return a value of a type within its limits."""
    flat = [one for limit in limits for one in (limit.metadata if isinstance(limit, FieldInfo) else [limit])]
    if pattern := next((one.pattern for one in flat if getattr(one, "pattern", None)), None):
        return next(one for one in PATTERNED if re.search(pattern, one))
    bounds = {name: getattr(one, name) for one in flat for name in ("ge", "le") if hasattr(one, name)}
    if most := next((one.max_length for one in flat if getattr(one, "max_length", None)), None):
        text = text[:most]
    if len(bounds) == 2:
        return (bounds["ge"] + bounds["le"]) / 3 if kind is float else bounds["le"]
    return _value(kind, default, text)
