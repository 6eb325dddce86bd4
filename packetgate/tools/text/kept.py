"""What of results is too long to show, or no text: kept for a while, each under a handle of its session's own."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from hashlib import sha256
from pathlib import Path
from secrets import token_hex

SHOWN_CHARS = 12_000
"""Of a result, what a model is shown at once; a longer one is kept whole."""
MAX_KEPT_CHARS = 5_000_000
"""Most of one result that is kept."""
MAX_KEPT_BYTES = 10_000_000
"""Largest file that is kept of what is not text."""
MAX_RESULTS = 20
"""Kept of one session."""
MAX_BYTES = 100_000_000
"""Of all sessions together."""
MAX_AGE_S = 7 * 86_400.0
PREFIX = "kept:"
READER = "ai.read"
"""The tool that reads on, by its canonical name."""
LINE_CHARS = 1_000
"""A longer line is kept as several, so that it can be read in parts."""

_NAME = re.compile(r"[0-9a-z]{1,64}")
_session: ContextVar[str] = ContextVar("session", default="")


@contextmanager
def of_session(session: str) -> Iterator[None]:
    """Say whose results are kept, and may be read, within."""
    token = _session.set(session)
    try:
        yield
    finally:
        _session.reset(token)


class KeptResults:
    """Results in files that only their owner can read. Every method blocks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, content: str | bytes) -> str:
        """Keep a text or a file of this session and return its handle; empty where it cannot be kept."""
        session = self._of(_session.get())
        if session is None or (isinstance(content, bytes) and len(content) > MAX_KEPT_BYTES):
            return ""
        if isinstance(content, str):
            content = _in_lines(content[:MAX_KEPT_CHARS]).encode(errors="replace")
        handle = token_hex(8)
        return PREFIX + handle if self._write(session / handle, content) else ""

    def read(self, handle: str) -> str | None:
        """Return the text that this session keeps under a handle; None where there is no such thing, or no more.

        Raises:
            UnicodeDecodeError: it is no text.
        """
        file = self.file(handle, _session.get())
        with suppress(OSError):  # it was removed just now
            return file.read_text(encoding="utf-8") if file else None
        return None

    def file(self, handle: str, session: str) -> Path | None:
        """Return where a session keeps what has this handle; None where it does not, or no more."""
        folder, name = self._of(session), handle.removeprefix(PREFIX)
        if folder is None or not _NAME.fullmatch(name) or not self._is_here(folder / name):
            return None
        return folder / name

    def _is_here(self, file: Path) -> bool:
        """Whether there is such a file."""
        return file.is_file()

    def _write(self, file: Path, content: bytes) -> bool:
        """Write a file of a session; return whether that could be done."""
        with suppress(OSError):
            for folder in (self._folder, file.parent):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._prune(file.parent, len(content))
            file.touch(mode=0o600)
            file.write_bytes(content)
            return True
        return False

    def _of(self, session: str) -> Path | None:
        return self._folder / sha256(session.encode()).hexdigest()[:32] if session else None

    def _prune(self, session: Path, more: int) -> None:
        """Remove what is old, and the oldest where there is too much beside `more` bytes."""
        files = [(file.stat(), file) for file in self._folder.glob("*/*")]
        newest_first = sorted(files, key=lambda one: -one[0].st_mtime)
        total, own = 0, 0
        for about, file in newest_first:
            total += about.st_size
            own += file.parent == session
            too_many = file.parent == session and own >= MAX_RESULTS
            if too_many or total > MAX_BYTES - more or time.time() - about.st_mtime > MAX_AGE_S:
                file.unlink(missing_ok=True)
        for folder in self._folder.iterdir():
            if folder != session:
                with suppress(OSError):  # not empty
                    folder.rmdir()


def _in_lines(text: str) -> str:
    pieces = (line[at : at + LINE_CHARS] for line in text.split("\n") for at in range(0, len(line) or 1, LINE_CHARS))
    return "\n".join(pieces)
