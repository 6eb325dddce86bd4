"""The answer at a terminal, as it is written: in the end it stands there exactly once, and as it was finished."""

import os
import shutil
import sys
from types import TracebackType
from typing import Self

from rich.cells import cell_len

from connectors.sessions import AnswerPiece
from state.printing import printable

WITHDRAWN = "\n\n[the above is withdrawn; this is the answer:]\n"
TAB = 8


class StreamedAnswer:
    """Writes pieces as they come, without anything that could steer the terminal."""

    def __init__(self) -> None:
        self._shown = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the cursor on a line of its own, also where the answer broke off."""
        if self._shown:
            self._write("" if self._shown.endswith("\n") else "\n")

    def add(self, piece: AnswerPiece) -> None:
        """Write a piece."""
        text = printable(piece.text)
        self._shown += text
        self._write(text)

    def finish(self, answer: str) -> None:
        """Let the finished answer stand there: what was written of it stays, whatever else was written goes."""
        whole = printable(answer)
        if self._shown.rstrip() == whole.rstrip():
            return
        if not whole.startswith(self._shown):
            self._withdraw()
        rest = whole.removeprefix(self._shown)
        self._shown += rest
        self._write(rest)

    def _withdraw(self) -> None:
        """Take what was written from the screen; where its beginning has left the screen, say so instead."""
        columns, lines = shutil.get_terminal_size()
        up = rows(self._shown, columns) - 1
        fits = up < lines - 1 and os.environ.get("TERM") != "dumb"
        back = "\r" + (f"\x1b[{up}A" if up else "") + "\x1b[J"
        self._write(back if fits else WITHDRAWN)
        self._shown = ""

    def _write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()


def rows(text: str, columns: int) -> int:
    """Return how many rows of a terminal a text takes that begins at the left."""
    count, at = 1, 0
    for char in text:
        if char == "\n":
            count, at = count + 1, 0
            continue
        width = TAB - at % TAB if char == "\t" else cell_len(char)
        if at + width > columns and char != "\t":
            count, at = count + 1, 0
        at = min(at + width, columns)
    return count
