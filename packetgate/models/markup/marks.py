"""The marks that models put around tool calls and thoughts, cut out of a text while it arrives."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import regex

from packetgate.models.decoding.formats import (
    CALLS,
    CHANNEL_END,
    CHANNEL_HEADERS,
    ECHOES,
    HEADER_END,
    HEADERS,
    LED,
    NUMBER,
    OPENINGS,
    PREFIXES,
    THOUGHTS,
    TOKENS,
    WORDS,
)

_TAGS = (
    "tool_response",
    "tool_use",
    "invoke",
    "tool_call",
    "tool_calls",
    "function_call",
    "function_calls",
    "xai:function_call",
)
"""Tags that may have attributes."""
_LONGEST = 240
"""Characters of the longest mark."""

_FENCE = "```"
_FRAMES = tuple(one for one in (*CALLS, *ECHOES, *HEADERS) if not one.begin.startswith(_FENCE))
_LITERALS = (
    *(mark for frame in (*_FRAMES, *THOUGHTS) for mark in frame),
    *(f"<{slash}{name}>" for name in _TAGS for slash in ("", "/")),
    *("<function=", "</function>", *TOKENS, *CHANNEL_HEADERS),
)
_JSON_STRINGS = r'(?P<quote>")|\\.'
_RAW_STRINGS = (
    rf'(?P<quote><\|"\|>|<escape>|</?(?:{"|".join(map(re.escape, PREFIXES))})?parameter\b[^<>]*>'
    r"|</?(?:longcat_)?arg_value>|<\|(?:open|close)\|>argument\b[^<>]*<\|sep\|>)"
)
"""What quotes, in blocks that begin like JSON, and in others: there, tags around values do."""
_VALUE = re.compile(r"<([^<>]*?(?:parameter|arg_value))\b")
_WORD = re.compile(rf"<(/?)({'|'.join(WORDS)})[\s>]", re.IGNORECASE)
_BEGINNINGS = frozenset(
    (mark.lower() if mark.startswith("<") else mark)[:length] for mark in _LITERALS for length in range(1, len(mark))
)
_TOKEN_BEGINNING = re.compile(r"<[|\uff5c][^<\[|\uff5c>\n]{0,200}[|\uff5c]?|</?think:[\da-f]{0,16}")
_NESTED = "<[]\u25c1\u273f"
_BEFORE_MENTION = re.compile(r"\S.*[\s(\"'*\u201c\u201e\u00ab\u300c]\Z")
_WITHIN_SENTENCE = re.compile(r"[^\s.!?\u3002][ \t][(\"'*\u201c\u201e\u00ab\u300c]?\Z")
_AFTER_MENTION = re.compile(r"[ \t.,;:!?)\"'*\u201c\u201d\u00bb\u300d]")
"""What stands around a mark in its line where a sentence mentions it, and hardly where a model lets it slip."""
_LINE_CHARS = 200
_LAST = ">]["
"""Marks that others begin with end so."""
_FIRST = re.compile(rf"[{re.escape(_NESTED)}]|(?P<word>A(?=c|\Z))|>(?=>|\Z)")
"""Every mark begins with one of these, and hardly any holds one further in; a word does at the beginning of a line."""


@dataclass(frozen=True)
class _Mark:
    text: re.Pattern[str]
    end: re.Pattern[str] | None = None
    is_json: bool = False


def _mark(text: str, end: str | None = None) -> _Mark:
    return _Mark(re.compile(text, re.IGNORECASE), re.compile(end, re.IGNORECASE) if end else None)


def _literal(text: str, end: str | None = None) -> _Mark:
    return _mark(re.escape(text), re.escape(end) if end else None)


_END_OF_THOUGHT = _mark("|".join([*(re.escape(one.end) for one in THOUGHTS), rf"</think{NUMBER}>"]))
_HEADER = _mark("|".join(map(re.escape, CHANNEL_HEADERS)), re.escape(HEADER_END))
_LED = tuple((regex.compile(one.begin), re.compile(one.end, re.IGNORECASE)) for one in LED)
_MARKS = (
    *(
        _Mark(re.compile(one.begin), end, is_json=not one.begin.endswith(":"))
        for one, (_, end) in zip(LED, _LED, strict=True)
    ),
    *(_mark(rf"<{name}[^\w-]", rf"</{name}(?:{NUMBER})?>") for name in _TAGS),
    *(_literal(one.begin, one.end) for one in (*_FRAMES, *THOUGHTS)),
    _mark(rf"<think{NUMBER}>", rf"</think{NUMBER}>"),
    _mark("<function=", "</function>"),
    _mark(r"<\|\s*start of[^|]*tool call\s*\|>", r"<\|\s{0,9}end of[^|>]{0,200}tool call\s{0,9}\|>"),
    _HEADER,
    _END_OF_THOUGHT,
    _mark(rf"</(?:{'|'.join(_TAGS)}|function)>"),
    _mark("|".join(re.escape(mark) for mark in (*TOKENS, *(one.end for one in _FRAMES)))),
    _mark(r"<[|\uff5c](?:[^|\uff5c]*tool[^|\uff5c]*|[\w\u2581]{1,60})[|\uff5c]>"),  # of any family
)
_ANY = re.compile("|".join(mark.text.pattern for mark in _MARKS), re.IGNORECASE)


class MarkFilter:
    """Cuts marks out of a text, each with its block; holds back only what may still become one."""

    def __init__(self) -> None:
        self.found = 0
        self._passed: list[str] = []
        self._begun: list[str] = []
        self._end: re.Pattern[str] | None = None
        self._tail = ""
        self._quote: str | None = ""
        self._is_json = False
        self._header: str | None = None
        self._before = "\n"
        self._opening: str | None = ""
        self._has_text = False
        self._unclosed = Counter[str]()
        self._mentioned: list[re.Pattern[str]] = []
        self._line = ""

    def feed(self, text: str) -> Iterator[str | None]:
        """Return what is no mark, in order; None where a thought ends whose beginning is not in the text."""
        if self._opening is not None:
            text = self._open(text)
        at = 0
        while at < len(text):
            if self._end:
                text, at = self._skip(self._end, text[at:]), 0
                self._before = "\n"
            elif self._begun:
                yield from self._take(text[at])
                at += 1
            else:
                first = self._first(text, at)
                stop = first.start() if first else len(text)
                self._passed.append(text[at:stop])
                self._begun.extend(text[stop : stop + 1])
                at = stop + 1
        self._before = text[-1:] or self._before
        yield from self._pass()

    def _first(self, text: str, at: int) -> re.Match[str] | None:
        for first in _FIRST.finditer(text, at):
            if first["word"] is None or (text[first.start() - 1] if first.start() else self._before) == "\n":
                return first
        return None

    def takes(self, char: str) -> bool:
        """Whether the next character, this one, belongs to a block that is being cut, or to its mark."""
        if self._end or not self._begun:
            return self._end is not None
        return _is_beginning(self._begun[-1] + char) or bool(_mark_in(self._begun[-1]))

    def skip_code(self, code: str) -> Iterator[str | None]:
        """Return what was held back before code, which is part of the text and holds no marks."""
        self._passed += [self._opening or "", *self._begun]
        self._opening = None
        self._begun.clear()
        yield from self._pass()
        self._line, self._before, self._has_text = (self._line + code).rpartition("\n")[2], code[-1], True

    def close(self) -> Iterator[str]:
        """Return what was held back: the text is at its end."""
        self._passed.append(self._opening or "")
        self._opening = None
        yield from self._pass()
        while self._begun and (_mark_in(self._begun[-1]) or _mark_in(self._begun[-1] + "\n")):
            self._begun.pop()
            self.found += 1
        yield "".join(self._begun)

    def _take(self, char: str) -> Iterator[str | None]:
        text = self._begun[-1] + char
        if _is_beginning(text):
            self._begun[-1] = text
        elif (mark := _mark_in(text)) and not self._is_text(text):
            if char in _LAST and self._may_be_mentioned(mark, text):
                self._begun[-1] = text  # what follows shows whether it is mentioned
            else:
                yield from self._cut(mark)
        elif char in _NESTED and not _mark_in(self._begun[-1]):
            if self._begun[0][0] not in _NESTED:  # words hold no marks
                self._passed.append(self._begun.pop())
            self._begun.append(char)
        else:
            yield from self._back_up(text)

    def _back_up(self, text: str) -> Iterator[str | None]:
        for end in range(len(text) - 1, 0, -1):
            if text[end - 1] in _LAST and (mark := _mark_in(text[:end])):
                if _AFTER_MENTION.match(text, end) and self._may_be_mentioned(mark, text[:end]):
                    self._mentioned += [mark.end] if mark.end else []
                    break
                yield from self._cut(mark)
                yield from self.feed(text[end:])
                return
        if tag := _WORD.match(text):
            self._unclosed[tag[2].lower()] += -1 if tag[1] else 1
        another = self._first(text, 1)
        end = another.start() if another else len(text)
        self._passed += [*self._begun[:-1], text[:end]]
        self._begun.clear()
        self._before = text[end - 1]
        yield from self.feed(text[end:])

    def _cut(self, mark: _Mark) -> Iterator[str | None]:
        yield from self._pass()
        self._line = ""  # no sentence goes on behind what was cut
        self._begun.pop()
        self.found += 1
        self._begin(mark.end, is_json=mark.is_json)
        self._header = "" if mark is _HEADER else None
        if mark is _END_OF_THOUGHT:
            self._has_text = False
            self._unclosed.clear()
            yield None

    def _may_be_mentioned(self, mark: _Mark, tag: str) -> bool:
        line = (self._line + "".join([*self._passed, *self._begun[:-1]])).rpartition("\n")[2]
        if tag in TOKENS:
            return bool(_WITHIN_SENTENCE.search(line))
        may_be = mark.end is not None or any(end.fullmatch(tag) for end in self._mentioned)
        return may_be and bool(_BEFORE_MENTION.search(line))

    def _is_text(self, tag: str) -> bool:
        word = _WORD.match(tag)
        if word and word[1]:
            return self._unclosed[word[2].lower()] > 0
        return bool(word) and (self._has_text or bool("".join(self._passed).strip()))

    def _pass(self) -> Iterator[str]:
        if passed := "".join(self._passed):
            self._passed.clear()
            self._has_text |= bool(passed.strip())
            self._line = (self._line + passed).rpartition("\n")[2][-_LINE_CHARS:]
            yield passed

    def _open(self, text: str) -> str:
        self._opening = f"{self._opening or ''}{text}"
        begun = self._opening.lstrip()
        for opening in OPENINGS:
            following = begun.removeprefix(opening.begin)[:1]
            if begun.startswith(opening.begin) and (following.isalnum() or not opening.glued):
                self._opening = None
                self.found += 1
                self._begin(re.compile(re.escape(opening.end)))
                return begun[len(opening.begin) :]
        if any(opening.begin.startswith(begun) for opening in OPENINGS):
            return ""
        text, self._opening = self._opening, None
        return text

    def _begin(self, end: re.Pattern[str] | None, *, is_json: bool = False) -> None:
        self._end, self._tail, self._quote, self._is_json = end, "", "" if is_json else None, is_json

    def _skip(self, end: re.Pattern[str], text: str) -> str:
        block = self._tail + text
        if self._quote is None and block.strip():
            self._quote, self._is_json = "", block.lstrip()[0] in "{["
        strings = _JSON_STRINGS if self._is_json else _RAW_STRINGS
        place = 0
        for token in re.compile(f"{strings}|(?P<end>{end.pattern})", re.IGNORECASE | re.DOTALL).finditer(block):
            if token["end"] is not None and not self._quote:
                self._follow(block[: token.start()])
                return block[token.end() :]
            place = token.end()
            if quote := token["quote"]:
                self._quote = _after(quote, self._quote or "")
        if self._header is not None:
            self._header += block[:place]
        self._tail = block[max(place, len(block) - _LONGEST) :]
        return ""

    def _follow(self, rest: str) -> None:
        said = "" if self._header is None else self._header + rest
        hidden = "analysis" in said or "to=" in said
        self._header = None
        self._begin(re.compile(CHANNEL_END) if hidden else None)


def _after(mark: str, open_quote: str) -> str:
    if open_quote or mark.startswith(("</", "<|close|>")):
        return "" if mark == open_quote else open_quote
    if value := _VALUE.match(mark):
        return f"</{value[1]}>"
    return "<|close|>argument<|sep|>" if mark.startswith("<|open|>") else mark


def _is_beginning(text: str) -> bool:
    known = text.lower() if text.startswith("<") else text
    if known in _BEGINNINGS or _TOKEN_BEGINNING.fullmatch(text):
        return True
    return any(found.partial for led, _ in _LED if (found := led.fullmatch(text, partial=True)))


def _mark_in(text: str) -> _Mark | None:
    if not _ANY.fullmatch(text):
        return None
    return next(mark for mark in _MARKS if mark.text.fullmatch(text))
