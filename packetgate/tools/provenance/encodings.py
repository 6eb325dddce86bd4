"""The forms in which a text may hide: each way of writing it that is undone by rule."""

import base64
import binascii
import codecs
import re
from collections.abc import Callable, Iterator
from urllib.parse import unquote_plus

ROUNDS = 2
MAX_CHARS = 20_000
MAX_FORMS = 16

_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{8,}={0,2}")
_BASE32 = re.compile(r"[A-Z2-7]{16,}={0,6}", re.IGNORECASE)
_HEX = re.compile(r"(?:[0-9a-fA-F]{2}[\s:]?){6,}")
_CODES = re.compile(r"\d{2,3}(?:[\s,.;_-]+\d{2,3}){5,}")


def forms_of(text: str) -> list[str]:
    """Return a text, and what it says in each code that it may be in, twice over."""
    found = dict.fromkeys([text[:MAX_CHARS]])
    newest = list(found)
    for _ in range(ROUNDS):
        newest = [form for one in newest for form in _decoded(one) if form not in found][: MAX_FORMS - len(found)]
        found.update(dict.fromkeys(newest))
    return [*found, *(one[::-1] for one in [*found])]


def _decoded(text: str) -> Iterator[str]:
    unquoted = unquote_plus(text)
    if unquoted != text:
        yield unquoted
    yield codecs.encode(text, "rot13")
    for pattern, decode in ((_HEX, _from_hex), (_BASE64, _from_base64), (_BASE32, _from_base32), (_CODES, _from_codes)):
        parts = [said for one in pattern.finditer(text) if (said := decode(one[0]))]
        if parts:
            yield " ".join(parts)
    squeezed = re.sub(r"[^A-Za-z0-9+/_=-]", "", text)
    if squeezed != text and (whole := _from_base64(squeezed)):
        yield whole


def _from_base64(text: str) -> str:
    """Return what a run of characters says wherever it begins: what stands before it may be of its alphabet, too."""
    bare = text.rstrip("=").replace("-", "+").replace("_", "/")
    said = (_aligned_base64(bare[at:]) for at in range(4))
    return " ".join(one for one in said if one)


def _aligned_base64(bare: str) -> str:
    whole = bare[: len(bare) - (len(bare) % 4 == 1)]
    return _text_of(lambda: base64.b64decode(whole + "=" * (-len(whole) % 4)))


def _from_base32(text: str) -> str:
    bare = text.rstrip("=").upper()
    return _text_of(lambda: base64.b32decode(bare + "=" * (-len(bare) % 8)))


def _from_hex(text: str) -> str:
    return _text_of(lambda: bytes.fromhex(re.sub(r"[^0-9a-fA-F]", "", text)))


def _from_codes(text: str) -> str:
    codes = [int(one) for one in re.findall(r"\d+", text)]
    return "".join(map(chr, codes)) if all(9 <= one < 127 for one in codes) else ""


def _text_of(decode: Callable[[], bytes]) -> str:
    try:
        text = decode().decode("utf-8", errors="replace")
    except (ValueError, binascii.Error):
        return ""
    readable = sum((char.isprintable() and char != "\ufffd") or char.isspace() for char in text)
    return text if len(text) >= 4 and readable >= 0.9 * len(text) else ""
