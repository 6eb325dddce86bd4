"""Files as text: what can be read, and what a file seems to be when it cannot."""

import mimetypes
import os
import stat
from contextlib import suppress
from pathlib import Path

from packetgate.tools.builtin.failures import NotTextError, TooLargeError, ToolFailure
from packetgate.tools.builtin.root import Root

_ENCODINGS = {
    b"\xff\xfe\x00\x00": "UTF-32 text",
    b"\x00\x00\xfe\xff": "UTF-32 text",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
}
_FORMATS = {
    b"\x89PNG": "a PNG picture",
    b"\xff\xd8\xff": "a JPEG picture",
    b"%PDF-": "a PDF document",
    b"PK\x03\x04": "a ZIP archive or an Office document",
    b"\x1f\x8b": "gzip data",
    b"\x7fELF": "a program",
    b"SQLite format 3\x00": "an SQLite database",
    b"GGUF": "a GGUF model",
}


def read_bytes(root: Root, real: Path, limit: int) -> bytes:
    """Return the bytes of a resolved file.

    Raises:
        OSError: it cannot be opened, or is a link.
        ToolFailure: it is neither a file nor a folder (a pipe, a device).
        TooLargeError: it has more than `limit` bytes.
    """
    with root.folder(real.parent) as folder:
        try:
            return read_entry(real.name, folder, limit)
        except ToolFailure as error:
            raise type(error)(f"{root.name(real)} {error}") from error


def read_part(root: Root, real: Path, limit: int, *, from_end: bool) -> bytes:
    """Return whole lines of a resolved file, of so many bytes at most, from its beginning or its end.

    Raises:
        OSError: it cannot be opened, or is a link.
    """
    with root.folder(real.parent) as folder:
        descriptor = os.open(real.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    with os.fdopen(descriptor, "rb") as file:
        if from_end:
            file.seek(-limit, os.SEEK_END)
        data = file.read(limit)
    return data.partition(b"\n")[2] if from_end else data[: data.rfind(b"\n") + 1]


def read_entry(name: str, folder: int, limit: int) -> bytes:
    """Return the bytes of a file in an open folder; the failures are told without its name.

    Raises:
        OSError: it cannot be opened, or is a link.
        ToolFailure: it is neither a file nor a folder (a pipe, a device).
        TooLargeError: it has more than `limit` bytes.
    """
    # Without O_NONBLOCK, opening a pipe that nobody writes to would wait for ever.
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    with os.fdopen(descriptor, "rb") as file:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            raise ToolFailure("is not a regular file but a pipe, a socket or a device")
        data = file.read(limit + 1)
    if len(data) > limit:
        raise TooLargeError(f"is too large: {max(about.st_size, len(data)):,} bytes, the limit is {limit:,}")
    return data


def decode(data: bytes, name: str) -> str:
    """Return UTF-8 bytes as text, without a byte order mark.

    Raises:
        NotTextError: they are something else; the message says what they seem to be.
    """
    if b"\0" not in data and not data.startswith(tuple(_ENCODINGS)):
        with suppress(UnicodeDecodeError):
            return data.decode("utf-8-sig")
    raise NotTextError(f"{name} is not UTF-8 text: it seems to be {_kind(data, name)}")


def _kind(data: bytes, name: str) -> str:
    known = next((kind for mark, kind in (_ENCODINGS | _FORMATS).items() if data.startswith(mark)), None)
    by_name = mimetypes.guess_type(name)[0]
    if known or (by_name and not by_name.startswith("text/")):
        return known or f"{by_name}, going by its name"
    return "binary data" if b"\0" in data else "text in another encoding, or binary data"


def lines_of(text: str) -> list[str]:
    """Return the lines of a text without their newlines; as in editors, only a newline ends a line."""
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines
