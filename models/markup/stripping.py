"""Tool markup that models let slip into text: found, cut out, counted, at once or while the text arrives."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from models.markup.fences import FenceFilter, is_call, may_be_call
from models.markup.marks import MarkFilter

NOTHING_LEFT = "I have no answer: what the model wrote was a tool call in the wrong place, and was not run."
"""Shown in place of an answer that was markup and nothing else."""


@dataclass(frozen=True)
class Cleaned:
    """Text without tool markup, and how many pieces had to go."""

    text: str
    violations: int


def strip_markup(text: str) -> Cleaned:
    """Cut every piece of tool markup out of `text`, and what cutting uncovers."""
    markup = MarkupFilter()
    markup.feed(text)
    markup.close()
    return Cleaned(markup.text, markup.violations)


class MarkupFilter:
    """Takes a text in pieces, cut anywhere, and gives back what of it may be shown, as soon as that is certain.

    Held back: what may be the beginning of a mark, white space until something follows, the inside of a fence that
    begins like a JSON object, and an answer that begins like one. Everything else is given back at once.

    Some chat templates open the thought themselves, so that only its end is in the text. What stood before has been
    given back by then; `text` is without it.
    """

    def __init__(self) -> None:
        self._marks, self._fences = MarkFilter(), FenceFilter()
        self._begins: str | None = ""
        """All of the text so far, while it may be a call and nothing else."""
        self._space = ""
        """White space that is shown when something follows."""
        self._shown: list[str] = []
        self._started = False
        self._thought = ""
        self._calls = 0
        self._counted_at_text = self._counted_at_thought = 0

    @property
    def violations(self) -> int:
        """How many pieces were cut."""
        return self._marks.found + self._fences.found + self._calls

    @property
    def text(self) -> str:
        """What is shown of the text so far, without a thought before it."""
        answer = "".join(self._shown).strip()
        # A mark at the very end ends no thought: nothing follows that would be the answer.
        return answer if answer or self.violations > self._counted_at_thought else self._thought

    def feed(self, piece: str) -> str:
        """Return what can be shown now."""
        return "".join(self._show(self._marks.feed(piece)))

    def close(self) -> str:
        """Return the rest that is shown: the text is at its end."""
        rest = [*self._show(self._marks.close()), *map(self._take, self._fences.close())]
        if self._begins and is_call(self._begins):
            self._calls += 1
        elif self._begins:
            rest.append(self._spaced(self._begins))
        self._begins = None
        return "".join(rest)

    def _show(self, pieces: Iterator[str | None]) -> Iterator[str]:
        for piece in pieces:
            if piece is None:
                self._end_thought()
            else:
                yield from map(self._take, self._fences.feed(piece))

    def _end_thought(self) -> None:
        """What came so far was a thought; the answer begins."""
        self._thought = self.text
        self._space = "\n\n" if self._started else ""
        self._shown = []
        self._begins = ""
        self._fences.restart()
        self._counted_at_thought = self.violations

    def _take(self, text: str) -> str:
        if self._begins is None:
            return self._spaced(text)
        self._begins += text
        if may_be_call(self._begins):
            return ""
        text, self._begins = self._begins, None
        return self._spaced(text)

    def _spaced(self, text: str) -> str:
        """Return the text with the white space before it, without that after it."""
        words = text.strip()
        if not words:
            self._space += text
            return ""
        space = self._space + text[: len(text) - len(text.lstrip())]
        if self.violations > self._counted_at_text:  # a cut leaves the line breaks of both its sides
            space = re.sub(r"\n{3,}", "\n\n", space)
        self._space = text[len(text.rstrip()) :]
        self._counted_at_text = self.violations
        shown = space + words if self._started else words
        self._started = True
        self._shown.append(shown)
        return shown
