"""What a server prints: in a file of bounded size that only its owner can read, and nowhere else."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock, Thread
from typing import TextIO

from packetgate.state.redaction import redacted

MAX_BYTES = 1_000_000
"""Size at which the older half of a log is dropped."""


class ServerLog:
    """The log of a server since its last start."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock()

    @property
    def called(self) -> str:
        """What whoever asks is told of its place: nothing of this machine, as they may be elsewhere."""
        return f"{self.path.parent.name}/{self.path.name} of Packetgate's data folder"

    def start(self) -> None:
        """Begin anew. Blocking."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(PermissionError):
            self.path.parent.chmod(0o700)
        self.path.unlink(missing_ok=True)  # not emptied: it may be open to others
        os.close(os.open(self.path, os.O_CREAT, 0o600))

    def write(self, printed: bytes) -> None:
        """Add what was printed, without secrets; where there is no room for it, it is lost. Blocking."""
        printed = redacted(printed.decode(errors="surrogateescape")).encode(errors="surrogateescape")
        with self._lock, suppress(OSError), self.path.open("r+b") as file:
            if file.seek(0, os.SEEK_END) > MAX_BYTES:
                file.seek(-MAX_BYTES // 2, os.SEEK_END)
                newer = file.read()
                file.seek(0)
                file.truncate()
                file.write(b"[what was printed before is dropped]\n" + newer)
            file.write(printed)

    @contextmanager
    def pipe(self) -> Iterator[TextIO]:
        """Open what a process that is started meanwhile prints to, until it ends."""
        reading, writing = os.pipe()
        Thread(target=self._copy, args=(reading,), daemon=True, name=f"log of {self.path.stem}").start()
        with os.fdopen(writing, "w", encoding="utf-8") as printing:
            yield printing

    def _copy(self, reading: int) -> None:
        with os.fdopen(reading, "rb", buffering=0) as printed:
            rest = b""
            while chunk := printed.read(65_536):
                *whole, rest = (rest + chunk).rpartition(b"\n")
                if len(rest) > 65_536:  # a secret that stands across this cut is not known again
                    whole, rest = [*whole, rest], b""
                self.write(b"".join(whole))
            self.write(rest)
