"""Check pictures by their headers, without decoding them."""

import struct
from hashlib import sha256

from packetgate.state.printing import byte_size
from packetgate.state.routing import ResultAttachment
from packetgate.state.sections import Attachment
from packetgate.tools.attached.media_types import SIGNATURES, has_signature
from packetgate.tools.text.result_store import ResultStore

MAX_PICTURE_BYTES = 5_000_000
"""Largest picture, in bytes, that is sent to a model: hosted models reject larger pictures."""
MAX_PIXELS = 50_000_000

_START_OF_FRAME = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
_ALONE = {0x01, *range(0xD0, 0xD9)}
"""JPEG markers without a length field."""


def picture_type(data: bytes) -> str:
    """Return the media type of a picture by its first bytes; empty for other data."""
    kinds = [kind for kind in SIGNATURES if kind.startswith("image/")]
    return next((kind for kind in kinds if has_signature(kind, data)), "")


def picture_problem(kind: str, data: bytes) -> str:
    """Return why a model cannot be shown a picture of this type; empty if it can."""
    if len(data) > MAX_PICTURE_BYTES:
        return f"it has {byte_size(len(data))}, the limit is {byte_size(MAX_PICTURE_BYTES)}"
    try:
        width, height = _SIZES[kind](data)
    except (struct.error, KeyError, IndexError):
        width = height = 0
    if not width or not height:
        return "it is a broken picture"
    if width * height > MAX_PIXELS:
        return f"it has {width:,} by {height:,} pixels, the limit is {MAX_PIXELS:,} in all"
    return ""


def stored_picture(one: Attachment | ResultAttachment, kept: ResultStore, session: str) -> bytes | None:
    """Return a stored picture; None if it is not a picture, has changed or is no longer stored. Blocking."""
    if not one.mime_type.startswith("image/"):
        return None
    file = kept.file(one.handle, session)
    try:
        data = file.read_bytes() if file else b""
    except OSError:  # another process removed the file
        return None
    unchanged = len(data) == one.size and sha256(data).hexdigest() == one.sha256
    return data if unchanged and has_signature(one.mime_type, data) else None


def _of_png(data: bytes) -> tuple[int, int]:
    width, height = struct.unpack_from(">II", data, 16)
    return (width, height) if data[12:16] == b"IHDR" else (0, 0)


def _of_gif(data: bytes) -> tuple[int, int]:
    width, height = struct.unpack_from("<HH", data, 6)
    return width, height


def _of_webp(data: bytes) -> tuple[int, int]:
    match data[12:16]:
        case b"VP8X":
            return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
        case b"VP8L":
            (bits,) = struct.unpack_from("<I", data, 21)
            return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
        case b"VP8 ":
            width, height = struct.unpack_from("<HH", data, 26)
            return width & 0x3FFF, height & 0x3FFF
    return 0, 0


def _of_jpeg(data: bytes) -> tuple[int, int]:
    at = 2
    while data[at] == 0xFF:
        marker = data[at + 1]
        if marker in _START_OF_FRAME:
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        if marker == 0xFF:  # a fill byte
            at += 1
        else:
            at += 2 if marker in _ALONE else 2 + struct.unpack_from(">H", data, at + 2)[0]
    return 0, 0


_SIZES = {"image/png": _of_png, "image/gif": _of_gif, "image/webp": _of_webp, "image/jpeg": _of_jpeg}
