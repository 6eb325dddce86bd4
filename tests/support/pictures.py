"""Small images, and the images and texts of requests to a model."""

import base64
import struct
import zlib
from typing import Any

from support.scripted_openai import ScriptedOpenAI

NO_TOOL = '{"needs_tool": false, "user_intent": "it", "access": "read", "action": "none", "confidence": 0.9}'
"""A model's answer at the intent or selection stage if no tool is needed."""


def png(shade: int = 0) -> bytes:
    """Return an image in one shade of grey."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 2, 1, 8, 0, 0, 0, 0)
    rows = zlib.compress(bytes([0, shade, shade]))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def data_url(data: bytes, kind: str = "image/png") -> str:
    """Return a data URL of the file."""
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def parts(server: ScriptedOpenAI, number: int = -1) -> list[dict[str, Any]]:
    """Return the parts of a request's last message."""
    content = server.requests[number]["messages"][-1]["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def shown(server: ScriptedOpenAI, number: int = -1) -> list[bytes]:
    """Return the images of a request."""
    urls = [one["image_url"]["url"] for one in parts(server, number) if one["type"] == "image_url"]
    return [base64.b64decode(url.partition(",")[2]) for url in urls]


def last_text(server: ScriptedOpenAI, number: int = -1) -> str:
    """Return the text of a request's last message."""
    return "\n".join(one["text"] for one in parts(server, number) if one["type"] == "text")
