"""Tool markup that models let slip into text: found, cut out, counted, at once or while the text arrives."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from models.decoding.call_forms import says_call
from models.decoding.native_calls import read_answer
from models.decoding.values import read_strict
from models.markup.lines import LineFilter
from models.markup.marks import MarkFilter

NOTHING_LEFT = "I have no answer: what the model wrote was a tool call in the wrong place, and was not run."
"""Shown in place of an answer that was markup and nothing else."""

_TICKS = re.compile(r"`+")
_FIRST_LINE = re.compile(r"(`{3,})([^\n`]{0,100})")
_WORDS = ("functools[", "to=functions.")
"""What calls begin with that have no marks: of Phi, and of gpt-oss where the template wrote the first mark."""
_MAY_BE_CALL = re.compile(
    r'\s*(?:\[\s*)?(?:\{\s*(?:".*)?)?|\s*\[\s*[^\W\d][\w.]*(?:\(.*)?|\s*(?:'
    + "|".join(re.escape(word[:length]) for word in _WORDS for length in range(1, len(word)))
    + "|"
    + "|".join(re.escape(word) + ".*" for word in _WORDS)
    + ")",
    re.DOTALL,
)
"""The beginning of a JSON object, of a list of them or of Pythonic calls; also of all that may still become one."""

_LAST_LINE = re.compile(r"\n[ \t]*```")
_DECODER = json.JSONDecoder()


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
    given back by then, unless the text is said to be `opened`: then nothing is until the thought ends, or the text.
    """

    def __init__(self, *, opened: bool = False) -> None:
        self.ended_thought = False
        """Whether a thought ended whose beginning is not in the text."""
        self._kept: str | None = "" if opened else None
        """What may be a thought that the template opened."""
        self._marks, self._fences, self._lines = MarkFilter(), _FenceFilter(), LineFilter()
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
        return self._marks.found + self._fences.found + self._lines.found + self._calls

    @property
    def text(self) -> str:
        """What is shown of the text so far, without a thought before it."""
        answer = "".join(self._shown).strip()
        # A mark at the very end ends no thought: nothing follows that would be the answer.
        return answer if answer or self.violations > self._counted_at_thought else self._thought

    def feed(self, piece: str) -> str:
        """Return what can be shown now."""
        return "".join(self._show(self._marks.feed(piece)))

    def is_not_opened(self) -> str:
        """Return what was kept, and keep nothing from now on: the text is known to begin outside of a thought."""
        kept, self._kept = self._kept, None
        return kept or ""

    def close(self) -> str:
        """Return the rest that is shown: the text is at its end."""
        rest = [
            *self._show(self._marks.close()),
            *self._read(self._fences.close()),
            *map(self._take, self._lines.close()),
        ]
        rest.insert(0, self._kept or "")
        if self._begins and _is_call(self._begins):
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
                yield from self._keep(self._read(self._fences.feed(piece)))

    def _read(self, pieces: Iterator[str]) -> Iterator[str]:
        """Return what is shown of pieces of which each is all code, or none."""
        for piece in pieces:
            lines = self._lines.close() if self._fences.in_code else self._lines.feed(piece)
            yield from map(self._take, lines)
            if self._fences.in_code:
                yield self._take(piece)

    def _keep(self, shown: Iterator[str]) -> Iterator[str]:
        if self._kept is None:
            yield from shown
        else:
            self._kept += "".join(shown)

    def _end_thought(self) -> None:
        """What came so far was a thought; the answer begins."""
        self.ended_thought, self._thought = True, self.text
        if self._kept is not None:
            self._kept, self._started = None, False
        self._space = "\n\n" if self._started else ""
        self._shown = []
        self._begins = ""
        self._fences.restart()
        self._lines = LineFilter(self._lines.found)
        self._counted_at_thought = self.violations

    def _take(self, text: str) -> str:
        if self._begins is None:
            return self._spaced(text)
        self._begins += text
        if _MAY_BE_CALL.fullmatch(self._begins):
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


class _FenceFilter:
    """Cuts tool calls in fenced blocks out of a text; holds back only what may still become one."""

    def __init__(self) -> None:
        self.found = 0
        self._held = ""
        self.in_code = False
        """Whether a fenced block has begun and was shown: the next bare fence ends it."""

    def feed(self, text: str) -> Iterator[str]:
        """Return what is in no fenced tool call, in order."""
        return self._sift(self._held + text, last=False)

    def close(self) -> Iterator[str]:
        """Return what was held back: the text is at its end."""
        return self._sift(self._held, last=True)

    def restart(self) -> None:
        """Forget what is held back: the text begins anew."""
        self._held, self.in_code = "", False

    def _sift(self, text: str, *, last: bool) -> Iterator[str]:
        at = 0
        while at < len(text):
            ticks = _TICKS.search(text, at)
            stop = ticks.start() if ticks else len(text)
            if stop > at:
                yield text[at:stop]
                at = stop
                continue
            shown, on = self._fence(text, at, last=last)
            if on is None:
                break
            yield shown
            at = on
        self._held = text[at:]

    def _fence(self, text: str, at: int, *, last: bool) -> tuple[str, int | None]:
        """Return what to show for the backticks at `at`, and where to go on: None when more must be read first."""
        first = _FIRST_LINE.match(text, at)
        ticks = _TICKS.match(text, at)
        line_end = first.end() if first else ticks.end() if ticks else at
        if line_end == len(text) and not last:
            return "", None
        if first is None or not text.startswith("\n", line_end):  # code inside a line
            return text[at:line_end], line_end
        body = line_end + 1
        if self.in_code and not first[2][:1].isalnum():
            self.in_code = False
            return text[at:body], body
        if first[2].strip().lower().startswith("tool"):
            end = text.find("```", body)
            return self._cut(end + 3) if end != -1 else self._cut(len(text)) if last else ("", None)
        if _MAY_BE_CALL.fullmatch(text, body) and (call := self._call(text, body, last=last)):
            return call
        self.in_code = True
        return text[at:body], body

    def _call(self, text: str, body: int, *, last: bool) -> tuple[str, int | None] | None:
        """Return the same for a fence whose inside begins like a call; None when it is none."""
        begin = len(text) - len(text[body:].lstrip())
        try:
            value, end = _DECODER.raw_decode(text, begin)
            while _reads_like_call(value) and text[end:].lstrip()[:1] in {"{", "["}:
                value, end = _DECODER.raw_decode(text, len(text) - len(text[end:].lstrip()))
        except (ValueError, RecursionError):
            return None if last or _LAST_LINE.search(text, body) else ("", None)
        rest = text[end:].lstrip()
        if rest in {"", "`", "``"} and not last:
            return "", None
        closed = rest.startswith("```")
        if (closed or not rest) and _reads_like_call(value):
            return self._cut(len(text) - len(rest) + 3 * closed)
        return None

    def _cut(self, end: int) -> tuple[str, int]:
        """Go on at `end`; a line break keeps what stood before and after from becoming one word."""
        self.found += 1
        return "\n", end


def _is_call(text: str) -> bool:
    """Whether the whole of `text` is calls: in JSON, one or several, as they go over the wire, or Pythonic."""
    text = text.strip()
    if text.startswith(_WORDS[1]):
        return True
    readings = read_answer(text, read_strict)
    if len(readings) != 1 or readings[0].end != len(text):
        return False
    value = readings[0].value
    return bool(value) and (isinstance(value, tuple) or says_call(value) or isinstance(value.get("tool_calls"), list))


def _reads_like_call(value: object) -> bool:
    calls = value if isinstance(value, list) else [value]
    return bool(calls) and all(map(says_call, calls))
