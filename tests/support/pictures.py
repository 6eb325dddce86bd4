"""Small pictures, and checks of what was sent to a model."""

import base64
import struct
import zlib
from typing import Any

from support.scripted_openai import ScriptedOpenAI

NO_TOOL = '{"needs_tool": false, "user_intent": "it", "access": "read", "action": "none", "confidence": 0.9}'
"""What a model answers that is asked for an intent, or for a selection, where no tool is needed."""


def png(width: int = 2, height: int = 1, shade: int = 0) -> bytes:
    """Return a picture of one shade of grey; `width` and `height` are what its header says."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress(bytes([0, shade, shade]))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def gif(width: int, height: int) -> bytes:
    """Return the beginning of a GIF."""
    return b"GIF89a" + struct.pack("<HH", width, height) + bytes(3)


def jpeg(width: int, height: int) -> bytes:
    """Return the beginning of a JPEG, a thumbnail's segment and filling before its frame."""
    thumbnail = b"\xff\xe1" + struct.pack(">H", 20) + b"\xff\xc0" + bytes(16)
    return b"\xff\xd8" + thumbnail + b"\xff\xff\xc2" + struct.pack(">HBHH", 11, 8, height, width) + bytes(4)


def webp(kind: str, width: int, height: int) -> bytes:
    """Return the beginning of a WebP of one of its three kinds."""
    rest = {
        "VP8X": bytes(8) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little"),
        "VP8L": bytes(4) + b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14),
        "VP8 ": bytes(10) + struct.pack("<HH", width, height),
    }[kind]
    return b"RIFF" + bytes(4) + b"WEBP" + kind.encode() + rest


def data_url(data: bytes, kind: str = "image/png") -> str:
    """Return the address that is the file itself."""
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def parts(server: ScriptedOpenAI, number: int = -1) -> list[dict[str, Any]]:
    """Return the parts of a request's last message."""
    content = server.requests[number]["messages"][-1]["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def shown(server: ScriptedOpenAI, number: int = -1) -> list[bytes]:
    """Return the pictures of a request."""
    urls = [one["image_url"]["url"] for one in parts(server, number) if one["type"] == "image_url"]
    return [base64.b64decode(url.partition(",")[2]) for url in urls]


def told(server: ScriptedOpenAI, number: int = -1) -> str:
    """Return the words of a request's last message."""
    return "\n".join(one["text"] for one in parts(server, number) if one["type"] == "text")
