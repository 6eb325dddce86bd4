"""Check media types by the first bytes of a file, without decoding it."""

import re
from hashlib import sha256

from packetgate.state.printing import byte_size
from packetgate.state.routing import ResultAttachment
from packetgate.state.sections import Attachment
from packetgate.tools.text.result_store import ResultStore

MAX_PICTURE_BYTES = 5_000_000
"""Largest image, in bytes, that is sent to a model: hosted models reject larger images."""
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
    """Return the media type of an image by its first bytes; empty for other data."""
    kinds = [kind for kind in SIGNATURES if kind.startswith("image/")]
    return next((kind for kind in kinds if has_signature(kind, data)), "")


def picture_problem(data: bytes) -> str:
    """Return why an image cannot be sent to a model; empty if it can."""
    limit = byte_size(MAX_PICTURE_BYTES)
    return f"it has {byte_size(len(data))}, the limit is {limit}" if len(data) > MAX_PICTURE_BYTES else ""


def stored_picture(attachment: Attachment | ResultAttachment, results: ResultStore, session: str) -> bytes | None:
    """Return a stored image; None if the attachment is not an image, or has changed or been deleted. Blocking."""
    if not attachment.mime_type.startswith("image/"):
        return None
    file = results.file(attachment.handle, session)
    try:
        data = file.read_bytes() if file else b""
    except OSError:  # another process removed the file
        return None
    unchanged = len(data) == attachment.size and sha256(data).hexdigest() == attachment.sha256
    return data if unchanged and has_signature(attachment.mime_type, data) else None
