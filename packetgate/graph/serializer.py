"""How packets are written into checkpoints: as LangGraph writes them, but without computed fields, no part twice."""

import weakref
from typing import Any

import ormsgpack
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.jsonplus import EXT_PYDANTIC_V2, JsonPlusSerializer

from packetgate.state.base import Section
from packetgate.state.packet import checkpoint_types
from packetgate.state.private_names import allow_checkpoint_types

_PACKAGE = "packetgate."
_OLD_MODULES = {ormsgpack.packb(module.removeprefix(_PACKAGE)) for module, _ in checkpoint_types()}
"""Names of our modules in checkpoints of 0.1.0, before they were one package."""

allow_checkpoint_types(checkpoint_types())


_KEPT = (Section, BaseMessage)


class PacketSerializer(JsonPlusSerializer):
    """Restores our own types and LangChain's messages, and nothing else.

    A checkpoint may hold all sections and all messages, of which a stage changes a few. Sections are frozen, so the
    bytes of the others still hold, for as long as they live; a message's do where it says the same as it did.
    """

    def __init__(self) -> None:
        super().__init__(allowed_msgpack_modules=checkpoint_types())
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

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Restore a value, also one that 0.1.0 kept."""
        kind, content = data
        if kind == "msgpack" and any(old in content for old in _OLD_MODULES):
            content = ormsgpack.packb(_unpacked(content), option=ormsgpack.OPT_NON_STR_KEYS)
        return super().loads_typed((kind, content))

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


def _unpacked(content: bytes) -> Any:
    return ormsgpack.unpackb(content, ext_hook=_renamed, option=ormsgpack.OPT_NON_STR_KEYS)


def _renamed(code: int, data: bytes) -> ormsgpack.Ext:
    """Return an object in its encoded form, under the name that its type has now."""
    if not any(old in data for old in _OLD_MODULES):
        return ormsgpack.Ext(code, data)
    parts = _unpacked(data)
    match parts:
        case [str() as module, *rest] if ormsgpack.packb(module) in _OLD_MODULES:
            parts = [_PACKAGE + module, *rest]
    return ormsgpack.Ext(code, ormsgpack.packb(parts, option=ormsgpack.OPT_NON_STR_KEYS))
