"""How packets are written into checkpoints: as LangGraph writes them, but without computed fields, no part twice."""

import weakref
from typing import Any

import ormsgpack
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde import _msgpack
from langgraph.checkpoint.serde.jsonplus import EXT_PYDANTIC_V2, JsonPlusSerializer

from packetgate.state.base import Section
from packetgate.state.packet import checkpoint_types

_BEFORE = b"state."
"""How the names of our types began in checkpoints of 0.1.0, behind the marks of a tuple and of a short text."""


# a server, and a graph that holds ours, read checkpoints by serializers of their own
_msgpack.SAFE_MSGPACK_TYPES |= frozenset(checkpoint_types())


_KEPT = (Section, BaseMessage)


class PacketSerializer(JsonPlusSerializer):
    """Restores our own types and LangChain's messages, and nothing else.

    A checkpoint may hold all sections and all messages, of which a stage changes a few. Sections are frozen, so the
    bytes of the others still hold, for as long as they live; a message's do where it says the same as it did.
    """

    def __init__(self) -> None:
        super().__init__(allowed_msgpack_modules=checkpoint_types())
        restore = self._unpack_ext_hook
        self._unpack_ext_hook = lambda code, data: restore(code, _renamed(data))
        self._encoded: dict[int, tuple[weakref.ref[Any], Any, ormsgpack.Ext]] = {}

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Return a channel's value, or a whole checkpoint, as bytes and their kind."""
        if isinstance(obj, dict) and isinstance(obj.get("channel_values"), dict):
            channels = dict(obj["channel_values"])
            for name, value in channels.items():
                if isinstance(value, _KEPT) or type(value) is list:
                    channels[name] = self._encoded_value(value)
            obj = {**obj, "channel_values": channels}
        elif isinstance(obj, _KEPT) or type(obj) is list:
            obj = self._encoded_value(obj)
        return super().dumps_typed(obj)

    def _encoded_value(self, value: Any) -> Any:
        if type(value) is list:
            return [self._encoded_value(one) if isinstance(one, _KEPT) else one for one in value]
        key = id(value)  # its own for as long as it lives
        kept, says = self._encoded.get(key), value.model_dump() if isinstance(value, BaseMessage) else None
        if kept is None or kept[1] != says:
            kind = type(value)
            parts = (
                kind.__module__,
                kind.__name__,
                value.model_dump(exclude_computed_fields=True) if says is None else says,
                "model_validate_json",
            )
            gone = weakref.ref(value, lambda _: self._encoded.pop(key, None))
            kept = self._encoded[key] = gone, says, ormsgpack.Ext(EXT_PYDANTIC_V2, super().dumps_typed(parts)[1])
        return kept[2]


def _renamed(data: bytes) -> bytes:
    """Return a value under the name that its type has now, where 0.1.0 kept one of ours."""
    if data[2:8] != _BEFORE:
        return data
    module, *rest = ormsgpack.unpackb(data, ext_hook=_renamed_within, option=ormsgpack.OPT_NON_STR_KEYS)
    return ormsgpack.packb((f"packetgate.{module}", *rest), option=ormsgpack.OPT_NON_STR_KEYS)


def _renamed_within(code: int, data: bytes) -> ormsgpack.Ext:
    return ormsgpack.Ext(code, _renamed(data))
