"""Tool markup that models let slip into text: found, cut out, counted, at once or while the text arrives."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from packetgate.models.decoding.call_forms import says_call
from packetgate.models.decoding.native_calls import read_answer
from packetgate.models.decoding.values import read_strict
from packetgate.models.markup.code import Code, CodeFilter
from packetgate.models.markup.lines import LineFilter

NOTHING_LEFT = "I have no answer: what the model wrote was a tool call in the wrong place, and was not run."
"""Shown in place of an answer that was markup and nothing else."""

_WORDS = ("functools[", "to=functions.")
"""What calls begin with that have no marks: of Phi, and of gpt-oss where the template wrote the first mark."""
_MAY_BE_CALL = re.compile(
    r'\s*(?:```tool.*|(?:```[\w-]*[ \t]*\n\s*)?(?:(?:\[\s*)?(?:\{\s*(?:".*)?)?|\[\s*[^\W\d][\w.]*(?:\(.*)?))|\s*(?:'
    + "|".join(re.escape(word[:length]) for word in _WORDS for length in range(1, len(word)))
    + "|"
    + "|".join(re.escape(word) + ".*" for word in _WORDS)
    + ")",
    re.DOTALL,
)
"""The beginning of JSON objects or Pythonic calls, also in a fence, and of what may still become one."""
_ASKED_FOR = re.compile(r"\bjson\b|\b(?:tool|function)[ _-]?call", re.IGNORECASE)
"""A request for an answer that reads like a call."""


@dataclass(frozen=True)
class Cleaned:
    """Text without tool markup, and how many pieces had to go."""

    text: str
    violations: int


def strip_markup(text: str, request: str = "") -> Cleaned:
    """Return `text` without thoughts and tool calls, except in code. See `MarkupFilter`."""
    markup = MarkupFilter(request)
    markup.feed(text)
    markup.close()
    return Cleaned(markup.text, markup.violations)


class MarkupFilter:
    """Takes a text in pieces, cut anywhere, and returns what of it may be shown, as soon as that is certain.

    Code is shown as it is. An answer that as a whole reads like a call, bare or in a fence, is not shown, unless the
    request asks for JSON or for a tool call.

    Held back: what may be the beginning of a mark or of code, white space until something follows, and an answer that
    may be a call as a whole. Everything else is returned at once.

    Some chat templates open the thought themselves, so that only its end is in the text. What came before has been
    returned by then, unless the text is said to be `opened`: then nothing is until the thought ends, or the text.
    """

    def __init__(self, request: str = "", *, opened: bool = False) -> None:
        self.ended_thought = False
        """Whether a thought ended whose beginning is not in the text."""
        self._kept: str | None = "" if opened else None
        self._code, self._lines = CodeFilter(), LineFilter()
        self._asked_for = bool(_ASKED_FOR.search(request))
        self._begins: str | None = ""
        self._space = ""
        self._shown: list[str] = []
        self._started = False
        self._thought = ""
        self._calls = 0
        self._counted_at_text = self._counted_at_thought = 0

    @property
    def violations(self) -> int:
        """How many pieces were cut."""
        return self._code.marks.found + self._lines.found + self._calls

    @property
    def text(self) -> str:
        """What is shown of the text so far, without a thought before it."""
        answer = "".join(self._shown).strip()
        # A mark at the very end ends no thought: nothing follows that would be the answer.
        return answer if answer or self.violations > self._counted_at_thought else self._thought

    def feed(self, piece: str) -> str:
        """Return what can be shown now."""
        return "".join(self._show(self._code.feed(piece)))

    def is_not_opened(self) -> str:
        """Return what was kept, and keep nothing from now on: the text is known to begin outside of a thought."""
        kept, self._kept = self._kept, None
        return kept or ""

    def close(self) -> str:
        """Return the rest that is shown: the text is at its end."""
        rest = [
            *self._show(self._code.close()),
            *map(self._take, self._lines.close()),
        ]
        rest.insert(0, self._kept or "")
        if self._begins and not self._asked_for and _is_call(self._begins):
            self._calls += 1
        elif self._begins:
            rest.append(self._spaced(self._begins))
        self._begins = None
        return "".join(rest)

    def _show(self, pieces: Iterator[str | None]) -> Iterator[str]:
        for piece in pieces:
            if piece is None:
                self._end_thought()
            elif isinstance(piece, Code):
                yield from self._keep(map(self._take, (*self._lines.close(), piece)))
            else:
                yield from self._keep(map(self._take, self._lines.feed(piece)))

    def _keep(self, shown: Iterator[str]) -> Iterator[str]:
        if self._kept is None:
            yield from shown
        else:
            self._kept += "".join(shown)

    def _end_thought(self) -> None:
        self.ended_thought, self._thought = True, self.text
        if self._kept is not None:
            self._kept, self._started = None, False
        self._space = "\n\n" if self._started else ""
        self._shown = []
        self._begins = ""
        self._lines = LineFilter(self._lines.found)
        self._counted_at_thought = self.violations

    def _take(self, text: str) -> str:
        if self._begins is None:
            return self._spaced(text)
        self._begins += text
        follows_fence = not isinstance(text, Code) and self._begins.lstrip().startswith("```") and text.strip()
        if not follows_fence and _MAY_BE_CALL.fullmatch(self._begins):
            return ""
        text, self._begins = self._begins, None
        return self._spaced(text)

    def _spaced(self, text: str) -> str:
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


def _is_call(text: str) -> bool:
    text = text.strip()
    if text.startswith(_WORDS[1]):
        return True
    readings = read_answer(text, read_strict)
    if len(readings) != 1 or text[readings[0].end :].strip("`\n"):
        return False
    value = readings[0].value
    return bool(value) and (isinstance(value, tuple) or says_call(value) or isinstance(value.get("tool_calls"), list))
