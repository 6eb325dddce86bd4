"""Stream an answer to a terminal; in the end it is shown exactly once, as finished."""

import os
import shutil
import sys
from types import TracebackType
from typing import Self

from rich.cells import cell_len

from packetgate.connectors.sessions import AnswerPiece
from packetgate.state.printing import printable

WITHDRAWN = "\n\n[the above is withdrawn; this is the answer:]\n"
TAB = 8


class StreamedAnswer:
    """Writes pieces as they come, without control characters."""

    def __init__(self) -> None:
        self._shown = ""
        self._rows = Rows(shutil.get_terminal_size().columns)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the cursor on a new line, also if the answer was interrupted."""
        if self._shown:
            self._write(self._rows.end() + ("" if self._shown.endswith("\n") else "\n"))

    def add(self, piece: AnswerPiece) -> None:
        """Write a piece."""
        text = printable(piece.text)
        self._shown += text
        self._write(self._rows.add(text))

    def finish(self, answer: str) -> None:
        """Complete the answer; if the streamed text differs from it, replace that."""
        whole = printable(answer)
        if self._shown.rstrip() == whole.rstrip():
            return
        if not whole.startswith(self._shown):
            self._withdraw()
        rest = whole.removeprefix(self._shown)
        self._shown += rest
        self._write(self._rows.add(rest))

    def _withdraw(self) -> None:
        """Erase the streamed text; if its beginning has scrolled away, print a note instead."""
        self._write(self._rows.end())
        lines = shutil.get_terminal_size().lines
        up = self._rows.row
        fits = up < lines - 1 and os.environ.get("TERM") != "dumb"
        back = "\r" + (f"\x1b[{up}A" if up else "") + "\x1b[J"
        self._write(back if fits else WITHDRAWN)
        self._shown = ""
        self._rows = Rows(self._rows.columns)

    def _write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()


class Rows:
    """Breaks a streamed text into terminal rows, between words, or at the edge inside code fences.

    The last word of a piece is held back until it is complete; wide characters count as words.
    """

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.row = 0
        """The current row, counted from the beginning of the text."""
        self._at = 0
        self._line = ""
        self._word = ""
        self._fenced = False

    def add(self, text: str) -> str:
        """Return the text to write for a further piece."""
        return "".join(map(self._next, text))

    def end(self) -> str:
        """Return the held-back text."""
        word, self._word = self._word, ""
        width = cell_len(word)
        broken = ""
        if not self._fenced and self._at > 0 and self._at + width > self.columns and width <= self.columns:
            broken, self._at, self.row = "\n", 0, self.row + 1
        for char in word:
            self._forward(cell_len(char))
        return broken + word

    def _next(self, char: str) -> str:
        self._line += char
        if not char.isspace():
            self._word += char
            is_whole = self._fenced or cell_len(char) > 1 or cell_len(self._word) >= self.columns
            return self.end() if is_whole else ""
        before = self.end()
        if char == "\n":
            self._fenced ^= self._line.lstrip().startswith("```")
            self._line, self._at, self.row = "", 0, self.row + 1
        elif char == "\t":
            self._at = min(self._at + TAB - self._at % TAB, self.columns)
        elif self._at >= self.columns and not self._fenced:
            return before  # a blank where a row ends anyway
        else:
            self._forward(1)
        return before + char

    def _forward(self, width: int) -> None:
        if self._at + width > self.columns:
            self._at, self.row = 0, self.row + 1
        self._at += width
