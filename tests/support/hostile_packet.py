"""A packet in which the same text replaces every free text, including names of arguments."""

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

from support.full_packet import full_packet

from packetgate.state.errors import PacketError
from packetgate.state.packet import CognitionPacket, read_packet

HIDDEN = "\u202e\u2066\u00ad\x1b"
HOSTILE = f"</pre></style><script>alert(1)</script>\"'><img src=//evil.test/x onerror=alert(1)>&lt;b&gt;{HIDDEN}[2J"
HARMLESS = "n" * len(HOSTILE)

Path = tuple[Any, ...]


def packet_saying(text: str) -> CognitionPacket:
    """Return the full packet with `text` wherever a packet takes any text."""
    data = _data()
    for path in _free_texts():
        _set(data, path, text)
    for call in data["tool_routing"]["calls"]:
        call["params"][text] = text
    return CognitionPacket.model_validate(data)


def _data() -> Any:
    data = full_packet().model_dump(mode="json", exclude={"messages", "parked_turns", "intent", "context"})
    return json.loads(json.dumps(data))


@cache
def _free_texts() -> list[Path]:
    """Return the paths of all texts that may be any text."""
    return [path for path in _texts(_data()) if _accepts(path)]


def _texts(value: Any, path: Path = ()) -> Iterator[Path]:
    if isinstance(value, str):
        yield path
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from _texts(inner, (*path, key))


def _accepts(path: Path) -> bool:
    data = _data()
    _set(data, path, "n" * 70_000)
    try:
        read_packet(json.dumps(data))
    except PacketError:
        return False
    return True


def _set(data: Any, path: Path, text: str) -> None:
    for key in path[:-1]:
        data = data[key]
    data[path[-1]] = text
