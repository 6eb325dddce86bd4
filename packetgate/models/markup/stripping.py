"""Cutting thoughts and leaked tool markup out of answers, at once or while they arrive."""

import re
from collections import Counter
from dataclasses import dataclass

import regex

from packetgate.models.decoding import formats
from packetgate.models.decoding.bodies import says_call
from packetgate.models.decoding.native_calls import is_list_of_calls, read_answer
from packetgate.models.decoding.values import read_strict
from packetgate.models.markup.marks import (
    AFTER_MENTION,
    BEFORE_MENTION,
    CANDIDATE,
    LIST_LINE,
    LONGEST,
    MARK,
    NESTED,
    OPENING,
    WITHIN_SENTENCE,
    Block,
    block_of,
    end_of,
    may_begin,
    plain,
)

NOTHING_LEFT = "I have no answer: what the model wrote was a tool call in the wrong place, and was not run."
"""Shown in place of an answer that was markup and nothing else."""

_LINE_CHARS = 200
_ASKED_FOR = re.compile(r"\bjson\b|\b(?:tool|function)[ _-]?call", re.IGNORECASE)
"""A request for an answer that looks like a call."""
_BEGINS_CALL = ("functools[", "to=functions.", "```tool")
_MAY_BE_CALL = regex.compile(
    r'\s*(?:(?:```[\w-]*[ \t]*\n\s*)?(?:(?:\[\s*)?\{\s*".*|\[\s*[^\W\d][\w.]*\(.*)|(?:'
    + "|".join(map(re.escape, _BEGINS_CALL))
    + ").*)",
    re.DOTALL,
)
"""A text that begins with JSON objects or Pythonic calls, also in a fence."""

_FENCE = 3
"""Backticks that begin a fence, at least."""


@dataclass(frozen=True)
class Cleaned:
    """Text without tool markup, and the number of pieces that were cut."""

    text: str
    violations: int


def strip_markup(text: str, request: str = "") -> Cleaned:
    """Return `text` without thoughts and tool calls outside of code. See `MarkupFilter`."""
    markup = MarkupFilter(request)
    markup.feed(text)
    markup.close()
    return Cleaned(markup.text, markup.violations)


class MarkupFilter:
    """Takes a text in pieces and returns what may be shown as soon as that is certain.

    Code in backticks is shown. An answer that is a call as a whole is not, unless the request asks for JSON or a call.

    It holds back the possible beginning of a mark or of code, white space until something follows, and an answer that
    may be a call as a whole.

    Some chat templates open the thought themselves, so that the text holds only its end. If the text may be `opened`,
    nothing is returned until the thought or the text ends.
    """

    def __init__(self, request: str = "", *, opened: bool = False) -> None:
        self.ended_thought = False
        """Whether a thought ended whose beginning is not in the text."""
        self.violations = 0
        """How many pieces were cut."""
        self._kept: str | None = "" if opened else None
        self._asked_for = bool(_ASKED_FOR.search(request))
        self._unread = ""
        self._released: list[str] = []
        self._block: Block | None = None
        self._joined = ""  # what stands before the block, and what follows it may complete to a mark
        self._fence, self._fence_begins_line = 0, False  # backticks that end the open fence
        self._line: str | None = None  # the current line so far; None before anything was read
        self._has_break = self._has_text = False
        self._unclosed = Counter[str]()
        self._mentioned: set[str] = set()
        self._begins: str | None = ""  # all of the text so far, while it may be a call and nothing else
        self._space, self._thought, self._started = "", "", False
        self._shown: list[str] = []
        self._cut_at_text = self._cut_at_thought = 0

    @property
    def text(self) -> str:
        """The shown text, without a thought before it."""
        answer = "".join(self._shown).strip()
        # A mark at the very end ends no thought: nothing follows that would be the answer.
        return answer if answer or self.violations > self._cut_at_thought else self._thought

    def feed(self, piece: str) -> str:
        """Return what can be shown now."""
        self._read(piece, last=False)
        return self._release()

    def is_not_opened(self) -> str:
        """Return what was kept, and keep nothing from now on: the text does not begin within a thought."""
        kept, self._kept = self._kept, None
        return kept or ""

    def close(self) -> str:
        """Return the rest."""
        self._read("\n", last=True)
        self._pass(self._joined)
        if self._begins and not self._asked_for and _is_call(self._begins):
            self.violations += 1
        elif self._begins:
            self._space_out(self._begins)
        self._begins = None
        return self.is_not_opened() + self._release()

    def _release(self) -> str:
        released = "".join(self._released)
        self._released.clear()
        if self._kept is None:
            return released
        self._kept += released
        return ""

    def _read(self, piece: str, *, last: bool) -> None:
        text, at, waits = self._unread + piece, 0, False
        while at < len(text) and not waits:
            if block := self._block:
                at, self._block = block.skip(text, at)
                waits = self._block is block
            elif self._fence:
                end = self._end_of_fence(text, at, last=last)
                waits, at = end == at, self._pass_code(text, at, end)
            else:
                at, waits = self._prose(text, at, last=last)
            if self._joined and not self._block:
                text, at, self._joined = self._joined + text[at:], 0, ""
        self._unread = text[at:]

    def _prose(self, text: str, at: int, *, last: bool) -> tuple[int, bool]:
        """Show prose and take what follows it; return the position, and whether to wait for more text."""
        if self._line is None:
            opening = OPENING.match(text, at, partial=not last)
            if opening and opening.partial:
                return at, True
            self._line = ""
            if opening:
                words = opening["glued"] or opening["words"]
                self._cut(Block(re.escape(dict(formats.OPENINGS)[words])))
                return opening.end(), False
        stop = self._candidate(text, at)
        self._pass(text[at:stop])
        if stop == len(text):
            return stop, False
        return self._code(text, stop, last=last) if text[stop] == "`" else self._mark(text, stop, last=last)

    def _candidate(self, text: str, at: int) -> int:
        for found in CANDIDATE.finditer(text, at):
            place = found.start()
            if found[0] != "A" or (text[place - 1] == "\n" if place > at else not self._line):
                return place
        return len(text)

    def _mark(self, text: str, at: int, *, last: bool) -> tuple[int, bool]:
        """Cut the mark here, or one that stands within it: cutting that may complete the outer one."""
        if text[at] == "[" and not self._line and self._has_break:
            found = LIST_LINE.match(text, at, partial=not last)
            if found and found.partial:
                return at, True
            if found and is_list_of_calls(found[0]):
                self._cut(None)
                self._pass("\n")
                return found.end(), False
        begin, found = at, MARK.match(text, at, partial=not last)
        while found is None:
            inner = NESTED.search(text, begin + 1, at + LONGEST)
            if inner is None or text[at] == "A" or not may_begin(text[begin : inner.start()]):
                self._pass(text[at : begin + 1])
                return begin + 1, False
            begin = inner.start()
            found = MARK.match(text, begin, partial=not last)
        if found.partial or (found.end() == len(text) and not last):
            return at, True
        if self._stays(found, text[at:begin], text[found.end() : found.end() + 1]):
            self._pass(text[at : found.end()])
        else:
            self._joined = text[at:begin]
            self._cut(block_of(found))
            if found["thought_end"]:
                self._end_thought()
        return found.end(), False

    def _stays(self, found: regex.Match[str], prefix: str, follows: str) -> bool:
        """Whether a mark is part of the text: mentioned in a sentence, or an ordinary tag of the text."""
        mark, kind, line = plain(found[0]), found.lastgroup, (self._line or "") + prefix
        word = (found["word"] or "").lower()
        if word and mark.startswith("</"):
            if self._unclosed[word] > 0:
                self._unclosed[word] -= 1
                return True
        elif word and (self._has_text or word in {"s", "function"} or not mark.endswith(">")):
            self._unclosed[word] += 1
            return True
        if mark[-1] not in ">]" or not AFTER_MENTION.match(follows):
            return False
        if kind in {"token", "word"}:
            return bool(WITHIN_SENTENCE.search(line))
        block = block_of(found)
        is_mention = (block is not None or mark in self._mentioned) and bool(BEFORE_MENTION.search(line))
        if is_mention and block:
            self._mentioned.add(end_of(mark))
        return is_mention

    def _cut(self, block: Block | None) -> None:
        self.violations += 1
        self._block, self._line = block, ""  # no sentence goes on behind what was cut

    def _code(self, text: str, at: int, *, last: bool) -> tuple[int, bool]:
        """Show code in backticks, or the first line of its fence."""
        rest = text[at : at + LONGEST]
        marks = rest[: len(rest) - len(rest.lstrip("`"))]
        behind = at + len(marks)
        if len(marks) == LONGEST:  # no code is quoted with so many
            self._pass(marks)
            return behind, False
        line_end = text.find("\n", behind)
        whole = last or line_end >= 0
        line = text[behind : line_end if line_end >= 0 else len(text)]
        closing = re.search(rf"(?<!`){marks}(?!`)", line)
        if closing and (whole or closing.end() < len(line)):
            return self._pass_code(text, at, behind + closing.end()), False
        if not whole:
            return at, True
        if len(marks) < _FENCE or "`" in line:
            self._pass(marks)
            return behind, False
        self._fence = len(marks)
        return self._pass_code(text, at, behind + len(line) + (line_end >= 0)), False

    def _end_of_fence(self, text: str, at: int, *, last: bool) -> int:
        begin = (r"(?:(?<=\n)|\A)" if self._fence_begins_line and not at else r"(?<=\n)") + r"[ \t>]*"
        ticks = rf"`{{{self._fence},}}+"
        if end := re.compile(rf"{begin}{ticks}(?=[^\w`])|{ticks}[ \t]*(?=\n)").search(text, at):
            self._fence = 0
            return end.end()
        held = None if last else re.compile(rf"(?:{begin})?`+[ \t]*\Z|{begin}\Z").search(text, at)
        return held.start() if held else len(text)

    def _pass_code(self, text: str, at: int, end: int) -> int:
        if end > at:
            self._fence_begins_line, self._has_text = text[end - 1] == "\n", True
            self._pass(text[at:end], is_code=True)
        return end

    def _pass(self, text: str, *, is_code: bool = False) -> None:
        if not text:
            return
        self._line = ((self._line or "") + text).rpartition("\n")[2][-_LINE_CHARS:]
        self._has_text |= bool(text.strip())
        self._has_break |= "\n" in text and not is_code
        if self._begins is None:
            self._space_out(text)
            return
        self._begins += text
        follows_fence = not is_code and self._begins.lstrip().startswith("```") and text.strip()
        if follows_fence or not _MAY_BE_CALL.fullmatch(self._begins, partial=True):
            text, self._begins = self._begins, None
            self._space_out(text)

    def _space_out(self, text: str) -> None:
        """Show a text with the white space before it; keep that after it."""
        words = text.strip()
        if not words:
            self._space += text
            return
        space = self._space + text[: len(text) - len(text.lstrip())]
        if self.violations > self._cut_at_text:  # a cut leaves the line breaks of both its sides
            space = re.sub(r"\n{3,}", "\n\n", space)
        self._space = text[len(text.rstrip()) :]
        self._cut_at_text = self.violations
        self._shown.append(space + words if self._started else words)
        self._released.append(self._shown[-1])
        self._started = True

    def _end_thought(self) -> None:
        self.ended_thought, self._thought = True, self.text
        if self._kept is not None:
            self._kept, self._started = None, False
            self._released.clear()
        self._space = "\n\n" if self._started else ""
        self._shown, self._begins = [], ""
        self._has_text = self._has_break = False
        self._unclosed.clear()
        self._cut_at_thought = self.violations


def _is_call(text: str) -> bool:
    """Whether the whole text is calls: JSON, the wire format of calls, or Pythonic."""
    text = text.strip()
    if text.startswith(_BEGINS_CALL[1]):
        return True
    readings = read_answer(text, read_strict)
    if len(readings) != 1 or text[readings[0].end :].strip("`\n"):
        return False
    value = readings[0].value
    return bool(value) and (isinstance(value, tuple) or says_call(value) or isinstance(value.get("tool_calls"), list))
