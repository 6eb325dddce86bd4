"""Check media types and the sizes of pictures by the first bytes of a file, without decoding it."""

import re
import struct
from hashlib import sha256

from packetgate.state.printing import byte_size
from packetgate.state.routing import ResultAttachment
from packetgate.state.sections import Attachment
from packetgate.tools.text.result_store import ResultStore

MAX_PICTURE_BYTES = 5_000_000
"""Largest picture, in bytes, that is sent to a model: hosted models reject larger pictures."""
MAX_PIXELS = 50_000_000

_START_OF_FRAME = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
_MARKERS_WITHOUT_LENGTH = {0x01, *range(0xD0, 0xD9)}
"""JPEG markers without a length field."""
UNKNOWN_TYPE = "application/octet-stream"
_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9_.+-]{0,63}/[a-z0-9][a-z0-9_.+-]{0,63}")
_ALIASES = {"image/jpg": "image/jpeg", "audio/mp3": "audio/mpeg", "audio/x-wav": "audio/wav", "audio/wave": "audio/wav"}
SIGNATURES = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8[79]a"),
    "image/webp": re.compile(rb"RIFF.{4}WEBP", re.DOTALL),
    "audio/wav": re.compile(rb"RIFF.{4}WAVE", re.DOTALL),
    "audio/mpeg": re.compile(rb"ID3|\xff[\xe2-\xff]"),
    "audio/ogg": re.compile(rb"OggS"),
    "audio/flac": re.compile(rb"fLaC"),
    "application/pdf": re.compile(rb"%PDF-"),
}


def normalized_media_type(declared: str) -> str:
    """Return the common name of a declared media type, without parameters; `UNKNOWN_TYPE` if it is invalid."""
    plain = declared[:200].partition(";")[0].strip().lower()
    return _ALIASES.get(plain, plain) if _MEDIA_TYPE.fullmatch(plain) else UNKNOWN_TYPE


def matches_declaration(kind: str, mime_type: str, data: bytes) -> bool:
    """Whether the first bytes are compatible with the declared kind and type."""
    if kind != "resource" and not mime_type.startswith(f"{kind}/"):
        return False
    if mime_type in SIGNATURES:
        return has_signature(mime_type, data)
    return kind == "resource" or not any(mark.match(data) for mark in SIGNATURES.values())


def has_signature(mime_type: str, data: bytes) -> bool:
    """Whether the first bytes are the signature of the type."""
    return mime_type in SIGNATURES and SIGNATURES[mime_type].match(data) is not None


def picture_type(data: bytes) -> str:
    """Return the media type of a picture by its first bytes; empty for other data."""
    kinds = [kind for kind in SIGNATURES if kind.startswith("image/")]
    return next((kind for kind in kinds if has_signature(kind, data)), "")


def picture_problem(kind: str, data: bytes) -> str:
    """Return why a picture of the media type `kind` cannot be sent to a model; empty if it can."""
    if len(data) > MAX_PICTURE_BYTES:
        return f"it has {byte_size(len(data))}, the limit is {byte_size(MAX_PICTURE_BYTES)}"
    try:
        width, height = _jpeg_size(data) if kind == "image/jpeg" else _picture_size(kind, data)
    except (struct.error, IndexError):
        width = height = 0
    if not width or not height:
        return "the picture is broken"
    if width * height > MAX_PIXELS:
        return f"it has {width:,} by {height:,} pixels, the limit is {MAX_PIXELS:,} in all"
    return ""


def stored_picture(attachment: Attachment | ResultAttachment, results: ResultStore, session: str) -> bytes | None:
    """Return a stored picture; None if the attachment is no picture, or has changed or been deleted. Blocking."""
    if not attachment.mime_type.startswith("image/"):
        return None
    file = results.file(attachment.handle, session)
    try:
        data = file.read_bytes() if file else b""
    except OSError:  # another process removed the file
        return None
    unchanged = len(data) == attachment.size and sha256(data).hexdigest() == attachment.sha256
    return data if unchanged and has_signature(attachment.mime_type, data) else None


def _picture_size(kind: str, data: bytes) -> tuple[int, int]:
    """Return width and height; zeros for a broken picture."""
    match kind, data[12:16]:
        case "image/png", b"IHDR":
            width, height = struct.unpack_from(">II", data, 16)
        case "image/gif", _:
            width, height = struct.unpack_from("<HH", data, 6)
        case "image/webp", b"VP8X":
            width, height = 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
        case "image/webp", b"VP8L":
            (bits,) = struct.unpack_from("<I", data, 21)
            width, height = 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
        case "image/webp", b"VP8 ":
            width, height = (side & 0x3FFF for side in struct.unpack_from("<HH", data, 26))
        case _:
            return 0, 0
    return width, height


def _jpeg_size(data: bytes) -> tuple[int, int]:
    at = 2
    while data[at] == 0xFF:
        marker = data[at + 1]
        if marker in _START_OF_FRAME:
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        if marker == 0xFF:  # a fill byte
            at += 1
        else:
            at += 2 if marker in _MARKERS_WITHOUT_LENGTH else 2 + struct.unpack_from(">H", data, at + 2)[0]
    return 0, 0
