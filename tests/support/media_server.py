"""A stdio server that answers with images, sounds and files, some with a wrong type."""

import base64
import random
from pathlib import Path
from typing import Any

PNG = b"\x89PNG\r\n\x1a\n" + random.Random(1).randbytes(12_000)
WAV = b"RIFF\x10\x27\x00\x00WAVE" + random.Random(2).randbytes(5_000)
BLOB = random.Random(3).randbytes(7_000)
PAGE = b"<script>alert(1)</script>" + random.Random(4).randbytes(500).hex().encode()
ADDRESS = "https://evil.test/track/pixel.bin"
LARGE = 1_500_000
BIG = 12_000_000
HUGE = 50_000_000


SCRIPT = Path(__file__)
"""For `plain_server.entry`."""


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


async def get_picture() -> Any:
    """Get the picture."""
    return [{"type": "text", "text": "drawn"}, {"type": "image", "data": encoded(PNG), "mimeType": "image/png"}]


async def get_sound() -> Any:
    """Get the sound."""
    return [{"type": "audio", "data": encoded(WAV), "mimeType": "audio/wav"}]


async def get_blob() -> Any:
    """Get the blob."""
    return [{"type": "resource", "resource": {"uri": ADDRESS, "blob": encoded(BLOB), "mimeType": "image\x1b[2J"}}]


async def get_page() -> Any:
    """Get the page, which is said to be a picture."""
    return [{"type": "image", "data": encoded(PAGE), "mimeType": "image/png"}]


async def get_map() -> Any:
    """Get the map, beside which there is a picture."""
    return [{"type": "image", "data": encoded(PNG.ljust(LARGE)), "mimeType": "image/png"}, *await get_picture()]


async def get_poster() -> Any:
    """Get the poster, too large to keep."""
    return [{"type": "image", "data": encoded(PNG.ljust(BIG)), "mimeType": "image/png"}]


async def get_archive() -> Any:
    """Get the archive, larger than any answer may be."""
    return [{"type": "resource", "resource": {"uri": ADDRESS, "blob": encoded(bytes(HUGE))}}]


if __name__ == "__main__":
    from plain_server import PlainServer  # in the folder of this script

    server = PlainServer("media")
    for function in (get_picture, get_sound, get_blob, get_page, get_map, get_poster, get_archive):
        server.reading(function)
    server.run()
