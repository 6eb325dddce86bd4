"""Store results that are too long to show or are not text. Each has a handle, which is valid only in its session."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from hashlib import sha256
from pathlib import Path
from secrets import token_hex

MAX_SHOWN_CHARS = 12_000
"""Longest result that a model receives at once, in characters. A longer result is stored."""
MAX_STORED_CHARS = 5_000_000
"""Longest stored text, in characters; the rest is cut."""
MAX_STORED_BYTES = 10_000_000
"""Largest stored file, in bytes."""
MAX_RESULTS = 20
"""Maximum stored results of one session."""
RESULT_AGE_S = 7 * 86_400.0
HANDLE_PREFIX = "kept:"
READ_TOOL = "ai.read"
"""Canonical name of the tool that reads stored results."""

_MAX_TOTAL_BYTES = 100_000_000
_LINE_CHARS = 1_000
"""Longest line that is read. A longer line is split, so that it can be read in parts."""
_NAME = re.compile(r"[0-9a-z]{1,64}")
_session: ContextVar[str] = ContextVar("session", default="")
_call_id: ContextVar[str] = ContextVar("call_id", default="")


@contextmanager
def session_results(session: str, call_id: str = "") -> Iterator[None]:
    """Within the block, stores read and write the data of this session; `call_id` is the call that runs."""
    tokens = _session.set(session), _call_id.set(call_id)
    try:
        yield
    finally:
        _session.reset(tokens[0])
        _call_id.reset(tokens[1])


def running_session() -> str:
    """Return the session of the running stage or call; empty outside a session."""
    return _session.get()


def running_call_id() -> str:
    """Return the id of the running call."""
    return _call_id.get()


class ResultStore:
    """Store results in files that only their owner can read. Every method blocks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, content: str | bytes) -> str:
        """Store a text or a file for the session and return its handle; empty if that fails."""
        session = self._session_folder(_session.get())
        if session is None or (isinstance(content, bytes) and len(content) > MAX_STORED_BYTES):
            return ""
        if isinstance(content, str):
            content = content[:MAX_STORED_CHARS].encode(errors="replace")
        handle = token_hex(8)
        return HANDLE_PREFIX + handle if self._write(session / handle, content) else ""

    def read(self, handle: str) -> str | None:
        """Return the stored text, with long lines split; None if the session has no such result, or it was deleted.

        Raises:
            UnicodeDecodeError: the stored result is not text.
        """
        file = self.file(handle, _session.get())
        with suppress(OSError):  # another process removed the file
            return _split_long_lines(file.read_text(encoding="utf-8")) if file else None
        return None

    def file(self, handle: str, session: str) -> Path | None:
        """Return the file of a stored result; None if the session has no such result, or the result was deleted."""
        folder, name = self._session_folder(session), handle.removeprefix(HANDLE_PREFIX)
        if folder is None or not _NAME.fullmatch(name) or not self._is_here(folder / name):
            return None
        return folder / name

    def _is_here(self, file: Path) -> bool:
        return file.is_file()

    def _write(self, file: Path, content: bytes) -> bool:
        with suppress(OSError):
            for folder in (self._folder, file.parent):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._prune(file.parent, len(content))
            file.touch(mode=0o600)
            file.write_bytes(content)
            return True
        return False

    def _session_folder(self, session: str) -> Path | None:
        return self._folder / sha256(session.encode()).hexdigest()[:32] if session else None

    def _prune(self, session: Path, new_bytes: int) -> None:
        files = [(file.stat(), file) for file in self._folder.glob("*/*")]
        total, own = new_bytes, 0
        for status, file in sorted(files, key=lambda pair: -pair[0].st_mtime):  # newest first
            total += status.st_size
            own += file.parent == session
            too_many = file.parent == session and own >= MAX_RESULTS
            if too_many or total > _MAX_TOTAL_BYTES or time.time() - status.st_mtime > RESULT_AGE_S:
                file.unlink(missing_ok=True)
        for folder in self._folder.iterdir():
            if folder != session:
                with suppress(OSError):  # not empty
                    folder.rmdir()


def _split_long_lines(text: str) -> str:
    pieces = (line[at : at + _LINE_CHARS] for line in text.split("\n") for at in range(0, len(line) or 1, _LINE_CHARS))
    return "\n".join(pieces)


def read_more_hint(handle: str) -> str:
    """Return a hint that names the tool and the handle to read a whole result; empty without a handle."""
    return f'; all of it can be read with ai.read, path "{handle}"' if handle else ""
