"""How packets are written into checkpoints: as LangGraph writes them, byte for byte, but each section only once."""

from collections import OrderedDict
from typing import Any

import ormsgpack
from langgraph.checkpoint.serde.jsonplus import EXT_PYDANTIC_V2, JsonPlusSerializer

from state.base import Section
from state.packet import checkpoint_types

KEPT = 256
"""Encoded sections kept at hand; a packet has a dozen."""


class PacketSerializer(JsonPlusSerializer):
    """Restores our own types and LangChain's messages, and nothing else.

    Every checkpoint holds all sections, of which a stage changes a few. Sections are frozen, so the bytes of the others
    still hold.
    """

    def __init__(self) -> None:
        super().__init__(allowed_msgpack_modules=checkpoint_types())
        self._encoded: OrderedDict[int, tuple[Section, ormsgpack.Ext]] = OrderedDict()

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Return a channel's value, or a whole checkpoint, as bytes and their kind."""
        if isinstance(obj, dict) and isinstance(obj.get("channel_values"), dict):
            channels = {name: self._section(value) for name, value in obj["channel_values"].items()}
            return super().dumps_typed({**obj, "channel_values": channels})
        return super().dumps_typed(self._section(obj))

    def _section(self, value: Any) -> Any:
        if not isinstance(value, Section):
            return value
        kept = self._encoded.get(id(value))
        if kept is None:
            kind = type(value)
            parts = (kind.__module__, kind.__name__, value.model_dump(), "model_validate_json")
            encoded = ormsgpack.Ext(EXT_PYDANTIC_V2, super().dumps_typed(parts)[1])
            kept = self._encoded[id(value)] = value, encoded  # the id is the section's own as long as that is kept too
            if len(self._encoded) > KEPT:
                self._encoded.popitem(last=False)
        return kept[1]
