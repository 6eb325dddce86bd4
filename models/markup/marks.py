"""The marks that models put around tool calls and thoughts, cut out of a text while it arrives."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_CALLS = ("tool_call", "tool_calls", "function_call", "function_calls", "tool_response", "tool_use", "invoke")
_THOUGHTS = ("think", "thinking", "reasoning")
_LONGEST = 240
"""Characters of the longest mark."""

_LITERALS = (
    *(mark for name in (*_CALLS, *_THOUGHTS) for mark in (f"<{name}>", f"</{name}>")),
    *("<function=", "</function>", "[TOOL_CALLS]", "[/TOOL_CALLS]"),
)
_BEGINNINGS = frozenset(mark[:length] for mark in _LITERALS for length in range(1, len(mark)))
_TOKEN_BEGINNING = re.compile(r"<[|\uff5c][^<\[|\uff5c>\n]{0,200}[|\uff5c]?")
_FIRST = re.compile(r"[<\[]")
"""Every mark begins with one of these, and holds none of them further in."""


@dataclass(frozen=True)
class _Mark:
    """A mark; with `end`, all text up to there goes with it, or to the end of the text where the end never comes."""

    text: re.Pattern[str]
    end: re.Pattern[str] | None = None


def _mark(text: str, end: str | None = None) -> _Mark:
    return _Mark(re.compile(text, re.IGNORECASE), re.compile(end, re.IGNORECASE) if end else None)


_END_OF_THOUGHT = _mark(rf"</(?:{'|'.join(_THOUGHTS)})>")
_MARKS = (
    *(_mark(rf"<{name}[^\w-]", f"</{name}>") for name in _CALLS),
    *(_mark(f"<{name}>", f"</{name}>") for name in _THOUGHTS),
    _mark("<function=", "</function>"),
    _mark(r"<\|\s*start of[^|]*tool call\s*\|>", r"<\|\s{0,9}end of[^|>]{0,200}tool call\s{0,9}\|>"),
    _mark(r"<\|python_tag\|>", r"<\|eo[mt]_id\|>"),
    _mark("<\uff5ctool\u2581calls?\u2581begin\uff5c>", "<\uff5ctool\u2581calls\u2581end\uff5c>"),
    _mark(r"\[TOOL_CALLS\]", r"\[/TOOL_CALLS\]"),
    _END_OF_THOUGHT,
    _mark(rf"</(?:{'|'.join(_CALLS)}|function)>"),
    _mark(r"<[|\uff5c][^|\uff5c]*(?:tool|python_tag|eom_id|eot_id)[^|\uff5c]*[|\uff5c]>"),
    _mark(r"\[/TOOL_CALLS\]"),
)
_ANY = re.compile("|".join(mark.text.pattern for mark in _MARKS), re.IGNORECASE)


class MarkFilter:
    """Cuts marks out of a text, each with its block; holds back only what may still become one."""

    def __init__(self) -> None:
        self.found = 0
        self._passed: list[str] = []
        """What is no mark, since the last cut."""
        self._begun: list[str] = []
        """Beginnings of marks, one inside the other: the inner one may be cut, and the outer one then go on."""
        self._end: re.Pattern[str] | None = None
        """What ends the block that is being cut."""
        self._tail = ""
        """The last of that block: its end may be split between two pieces."""

    def feed(self, text: str) -> Iterator[str | None]:
        """Return what is no mark, in order; None where a thought ends whose beginning is not in the text."""
        at = 0
        while at < len(text):
            if self._end:
                at = self._skip(self._end, text, at)
            elif self._begun:
                yield from self._take(text[at])
                at += 1
            else:
                first = _FIRST.search(text, at)
                stop = first.start() if first else len(text)
                self._passed.append(text[at:stop])
                self._begun.extend(text[stop : stop + 1])
                at = stop + 1
        yield from self._pass()

    def close(self) -> Iterator[str]:
        """Return what was held back: the text is at its end."""
        while self._begun and _mark_in(self._begun[-1] + "\n"):
            self._begun.pop()
            self.found += 1
        yield "".join(self._begun)

    def _take(self, char: str) -> Iterator[str | None]:
        text = self._begun[-1] + char
        if _is_beginning(text):
            self._begun[-1] = text
        elif mark := _mark_in(text):
            yield from self._pass()
            self._begun.pop()
            self.found += 1
            self._end = mark.end
            if mark is _END_OF_THOUGHT:
                yield None
        elif _FIRST.match(char):
            self._begun.append(char)
        else:
            self._passed += [*self._begun, char]
            self._begun.clear()

    def _pass(self) -> Iterator[str]:
        if passed := "".join(self._passed):
            self._passed.clear()
            yield passed

    def _skip(self, end: re.Pattern[str], text: str, at: int) -> int:
        """Return where the text goes on after the block."""
        block = self._tail + text[at:]
        found = end.search(block)
        if found is None:
            self._tail = block[-_LONGEST:]
            return len(text)
        at += found.end() - len(self._tail)
        self._end, self._tail = None, ""
        return at


def _is_beginning(text: str) -> bool:
    """Whether this much of a mark is there, and more must follow."""
    known = text.lower() if text.startswith("<") else text
    return known in _BEGINNINGS or bool(_TOKEN_BEGINNING.fullmatch(text))


def _mark_in(text: str) -> _Mark | None:
    """Return the mark that the whole of `text` is."""
    if not _ANY.fullmatch(text):
        return None
    return next(mark for mark in _MARKS if mark.text.fullmatch(text))
