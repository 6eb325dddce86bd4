"""A packet in which every free text, names of arguments included, is replaced by one and the same."""

import json
from collections.abc import Iterator
from typing import Any

from support.full_packet import full_packet

from packetgate.state.errors import PacketError
from packetgate.state.packet import CognitionPacket, read_packet

HIDDEN = "\u202e\u2066\u00ad\x1b"
HOSTILE = f"</pre></style><script>alert(1)</script>\"'><img src=//evil.test/x onerror=alert(1)>&lt;b&gt;{HIDDEN}[2J"
HARMLESS = "n" * len(HOSTILE)


def packet_saying(text: str) -> CognitionPacket:
    """Return the full packet with `text` wherever a packet takes any text."""
    data = full_packet().model_dump(mode="json")
    data.pop("messages")
    for holder, key in list(_places(data)):
        before = holder[key]
        holder[key] = "n" * min(len(text), 5_000)
        holder[key] = text if _is_packet(data) else before
    for call in data["tool_routing"]["calls"]:
        call["params"][text] = text
    return CognitionPacket.model_validate(data)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield where a text stands: what holds it, and its key there."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        if isinstance(inner, str):
            yield value, key
        else:
            yield from _places(inner)


def _is_packet(data: dict[str, Any]) -> bool:
    try:
        read_packet(json.dumps(data))
    except PacketError:
        return False
    return True
