"""Check declared media types by the first bytes of a file."""

import re

UNKNOWN_TYPE = "application/octet-stream"
_FORM = re.compile(r"[a-z0-9][a-z0-9_.+-]{0,63}/[a-z0-9][a-z0-9_.+-]{0,63}")
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


def cleaned_type(declared: str) -> str:
    """Return a declared type without parameters, by its common name; `UNKNOWN_TYPE` if it is invalid."""
    plain = declared[:200].partition(";")[0].strip().lower()
    return _ALIASES.get(plain, plain) if _FORM.fullmatch(plain) else UNKNOWN_TYPE


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
