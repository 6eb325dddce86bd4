"""Code in an answer: what stands in backticks, in a line or in a fence, is the author's and passes whatever it says."""

import re
from collections.abc import Iterator

from packetgate.models.markup.marks import MarkFilter

_TICKS = re.compile(r"`+")
_BEHIND_BREAK, _AT_LINE = r"(?<=\n)", r"(?:(?<=\n)|\A)"
_FENCE = 3
"""Backticks that begin a fence, at least."""


class Code(str):
    """Text in backticks, with the backticks."""

    __slots__ = ()


class CodeFilter:
    """Splits a text into code and prose while it arrives, and cuts the marks out of the prose.

    Held back: backticks until their line shows whether they begin code. Backticks inside a block that is being cut,
    such as a tool call whose argument is a document, belong to that block.
    """

    def __init__(self) -> None:
        self.marks = MarkFilter()
        self._held = ""
        self._fence = 0
        self._begins_line = False

    def feed(self, text: str) -> Iterator[str | None]:
        """Return `Code` and prose, in order; None where a thought ends whose beginning is not in the text."""
        return self._split(self._held + text, last=False)

    def close(self) -> Iterator[str | None]:
        """Return what was held back: the text is at its end."""
        yield from self._split(self._held, last=True)
        yield from self.marks.close()

    def _split(self, text: str, *, last: bool) -> Iterator[str | None]:
        at = 0
        while at < len(text):
            if self._fence:
                end = self._end_of_fence(text, at, last=last)
                if end == at:
                    break
                yield Code(text[at:end])
                self._begins_line = text[end - 1] == "\n"
            elif (ticks := _TICKS.search(text, at)) is None or ticks.start() > at:
                end = ticks.start() if ticks else len(text)
                yield from self.marks.feed(text[at:end])
            elif self.marks.takes("`"):
                end = at + 1
                yield from self.marks.feed("`")
            elif end := self._end_of_code(text, ticks, last=last):
                yield from self.marks.skip_code(text[at:end])
                yield Code(text[at:end])
                self._begins_line = text[end - 1] == "\n"
            elif last or "\n" in text[at:]:
                end = ticks.end()
                yield from self.marks.feed(ticks[0])
            else:
                break
            at = end
        self._held = text[at:]

    def _end_of_fence(self, text: str, at: int, *, last: bool) -> int:
        begin = (_AT_LINE if self._begins_line else _BEHIND_BREAK) + r"[ \t>]*"
        ticks = rf"`{{{self._fence},}}+"
        if end := re.compile(rf"{begin}{ticks}(?=[^\w`])|{ticks}[ \t]*(?=\n)").search(text, at):
            self._fence = 0
            return end.end()
        held = None if last else re.compile(rf"(?:{begin})?`+[ \t]*\Z|{begin}\Z").search(text, at)
        return held.start() if held else len(text)

    def _end_of_code(self, text: str, ticks: re.Match[str], *, last: bool) -> int:
        line, ended, _ = text[ticks.end() :].partition("\n")
        whole = bool(ended) or last
        closing = re.search(rf"(?<!`){ticks[0]}(?!`)", line)
        if closing and (whole or closing.end() < len(line)):
            return ticks.end() + closing.end()
        if len(ticks[0]) < _FENCE or "`" in line or not whole:
            return 0
        self._fence = len(ticks[0])
        return ticks.end() + len(line) + len(ended)
