"""Remove thoughts and leaked tool markup from complete or streamed answers."""

import re
from dataclasses import dataclass

import regex

from packetgate.models.decoding import (
    CALLS,
    CHANNEL,
    CHANNEL_END,
    CONTROL,
    ECHOES,
    HEADER_END,
    any_of,
    is_only_calls,
    read_answer,
)
from packetgate.models.json_text import THOUGHT_BEGIN, THOUGHT_END

ONLY_MARKUP = "I have no answer: the model wrote a tool call in place of the answer. It was not run."
"""The answer to the user if the model's answer was only markup."""

_LONGEST = 240
"""Length of the longest mark, in characters."""
_LINE_CHARS = 200
_CALL_REQUEST = re.compile(r"\bjson\b|\b(?:tool|function)[ _-]?call", re.IGNORECASE)
"""Pattern of a request for JSON or a call: an answer that looks like a call is shown."""
_MAY_BE_CALL = regex.compile(
    r'\s*(?:(?:```[\w-]*[ \t]*\n\s*)?(?:(?:\[\s*)?\{\s*".*|\[\s*[^\W\d][\w.]*\(.*)|```tool.*|to=functions\..*)',
    re.DOTALL,
)
"""Pattern of a text that begins with JSON objects or Python calls, with or without a fence."""

_FRAMES = tuple(one for one in (*CALLS, *ECHOES) if "`" not in one.begin)
_ENDS_OF = {one.begin.lower(): one.end.lower() for one in _FRAMES}
_TAG = (
    r"(?:\w+[:_])?(?:tool_?(?:calls?|use|code|response|results?)|function_?(?:calls?|results?)|invoke)"
    r"|function(?==)|\uff5c\w+\uff5c\ ?\w+"  # the last alternative is DeepSeek's
)


_MARK = regex.compile(
    rf"""(?P<thought_end>{THOUGHT_END})
  | (?P<thought>{THOUGHT_BEGIN})
  | (?P<frame>{any_of(*(one.begin for one in _FRAMES))})
  | (?P<header>{CHANNEL})
  | <(?P<tag>{_TAG})(?:[^\w-]|\Z)
  | (?P<pair><(?P<bar>[|\uff5c])(?P<before>[^|\uff5c<>\n]{{0,80}})(?:start|begin)
      (?P<after>[^|\uff5c<>\n]{{0,80}})[|\uff5c]>)(?<=(?:tool|action|think|thought)[^<]{{0,90}})
  | (?P<closing></(?:{_TAG})>|</function>|{any_of(*(one.end for one in _FRAMES))})
  | (?P<token>{CONTROL})""",
    regex.VERBOSE | regex.IGNORECASE,
)
_LIST_OF_CALLS = regex.compile(
    r"""\[(?:\s*+[^\W\d][\w.]*+(?P<group>[(\[{](?:[^()\[\]{}'"]|'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+"|(?&group))*+[)\]}])"""
    r"\s*+(?:,|(?=\])))++\s*+\]"
)
"""A list of Python calls and nothing else."""
_TOOL_FENCE = re.compile(r"\s*```tool(?:_code|_calls?)?\s")
_LINE_OF_CALLS = regex.compile(r"\[\s*+[^\W\d][\w.]{0,199}+\(\s*+(?:\w{1,100}+\s*+=|\))[^\n]{0,4000}\n")
"""Pattern of a line that begins with Python calls, such as `[weather(city='Oslo')]`."""
_CANDIDATE = re.compile(r"[<\[\u25c1`]")
_NESTED = re.compile(r"[<\[\u25c1]")

_OPEN_QUOTE = "\"'*\u201c\u201e\u00ab\u300c"
_BEFORE_MENTION = re.compile(rf"\S.*[\s({_OPEN_QUOTE}]\Z")
_WITHIN_SENTENCE = re.compile(rf"[^\s.!?\u3002][ \t][({_OPEN_QUOTE}]?\Z")
_AFTER_MENTION = re.compile(r"[ \t.,;:!?)\"'*\u201c\u201d\u00bb\u300d]")


@dataclass(frozen=True)
class Cleaned:
    """Text without tool markup, and the number of pieces that were removed."""

    text: str
    violations: int


def strip_markup(text: str, request: str = "") -> Cleaned:
    """Return `text` without thoughts and tool calls, except in code. See `MarkupFilter`."""
    markup = MarkupFilter(request)
    markup.feed(text)
    markup.close()
    return Cleaned(markup.text, markup.violations)


def removes_call(text: str, request: str = "") -> bool:
    """Return whether `strip_markup` removes a tool call from a text; calls in code and marks in sentences stay."""
    markup = MarkupFilter(request)
    markup.feed(text)
    markup.close()
    return bool(markup.removed_blocks) and any(
        isinstance(one.value, tuple) and one.is_marked for one in read_answer(text)
    )


@dataclass
class _Block:
    """A part of the text that is removed."""

    end: str
    """Pattern of the end mark; if it does not occur, the block ends with the text."""
    is_json: bool | None = None
    """Whether the block is JSON, so that end marks inside strings are ignored; None: not known yet."""
    in_string: bool = False
    is_header: bool = False

    def skip(self, text: str, at: int) -> tuple[int, "_Block | None"]:
        """Return the position after the read part, and the block that continues there; None if the block ended."""
        if self.is_header:
            end = text.find(HEADER_END, at)
            if end < 0:
                return max(at, len(text) - _LONGEST), self
            is_hidden = re.search("analysis|to=", text[at:end])
            return end + len(HEADER_END), _Block(CHANNEL_END) if is_hidden else None
        if self.is_json is None and (first := re.compile(r"\S").search(text, at)):
            self.is_json = first[0] in "{["
        strings = r'(?P<quote>")|\\.|' if self.is_json else ""
        for token in re.compile(f"{strings}(?P<end>{self.end})", re.IGNORECASE | re.DOTALL).finditer(text, at):
            if token["end"] is not None and not self.in_string:
                return token.end(), None
            at = token.end()
            self.in_string ^= bool(self.is_json and token["quote"])
        return max(at, len(text) - _LONGEST), self


class MarkupFilter:
    """Removes markup from a text that arrives in pieces. Returns text as soon as it is certain that it can be shown.

    Code in backticks is shown. An answer that is only a call is not shown, unless the request asks for JSON or a
    call. The filter holds back the possible beginning of a mark or of code, and white space until text follows.

    Some chat templates open the thought. Then the text has only the end mark, and `text` omits the text before it.
    """

    def __init__(self, request: str = "") -> None:
        self.violations = 0
        """Number of removed pieces."""
        self.removed_blocks = 0
        """Number of removed pieces with an end mark that are not thoughts: calls, and invented results."""
        self._call_requested = bool(_CALL_REQUEST.search(request))
        self._unread = ""
        self._released: list[str] = []
        self._block: _Block | None = None
        self._joined = ""  # text before the block, which may form a mark with the text after it
        self._fence = 0  # number of backticks that end the open fence; 0: no fence is open
        self._fence_begins_line = False
        self._line = ""
        self._mentioned: set[str] = set()
        self._beginning: str | None = ""  # the text so far, while the whole answer may be a call
        self._space = self._thought = ""
        self._started = False
        self._shown: list[str] = []
        self._cut_at_text = self._cut_at_thought = 0

    @property
    def text(self) -> str:
        """The shown text, without a thought before it."""
        answer = "".join(self._shown).strip()
        # If no text follows the end mark of a thought, the text before it is the answer.
        return answer if answer or self.violations > self._cut_at_thought else self._thought

    def feed(self, piece: str) -> str:
        """Return the text that can be shown now."""
        self._read(piece, last=False)
        return self._release()

    def close(self) -> str:
        """Return the rest of the text, which was held back."""
        self._read("\n", last=True)
        self._show(self._joined)
        if self._beginning and not self._call_requested and _is_only_calls(self._beginning):
            self.violations += 1
        elif self._beginning:
            self._append_with_space(self._beginning)
        self._beginning = None
        return self._release()

    def _release(self) -> str:
        released = "".join(self._released)
        self._released.clear()
        return released

    def _read(self, piece: str, *, last: bool) -> None:
        text, at, waits = self._unread + piece, 0, False
        while at < len(text) and not waits:
            if block := self._block:
                at, self._block = block.skip(text, at)
                waits = self._block is block
            elif self._fence:
                end = self._end_of_fence(text, at, last=last)
                waits, at = end == at, self._show_code(text, at, end)
            else:
                at, waits = self._read_prose(text, at, last=last)
            if self._joined and not self._block:
                text, at, self._joined = self._joined + text[at:], 0, ""
        self._unread = text[at:]

    def _read_prose(self, text: str, at: int, *, last: bool) -> tuple[int, bool]:
        """Show prose and read the code or mark after it; return the position, and whether to wait for more text."""
        found = _CANDIDATE.search(text, at)
        stop = found.start() if found else len(text)
        self._show(text[at:stop])
        if stop == len(text):
            return stop, False
        return self._read_code(text, stop, last=last) if text[stop] == "`" else self._read_mark(text, stop, last=last)

    def _read_mark(self, text: str, at: int, *, last: bool) -> tuple[int, bool]:
        """Remove the mark at this position, or a mark inside it: then the outer mark may become complete."""
        if text[at] == "[" and not self._line and self._shown:
            line = _LINE_OF_CALLS.match(text, at, partial=not last)
            if line and line.partial:
                return at, True
            if line and _is_line_of_calls(line[0]):
                self.violations += 1
                return line.end() - 1, False
        begin, found = at, _MARK.match(text, at, partial=not last)
        while found is None:
            inner = _NESTED.search(text, begin + 1, at + _LONGEST)
            if inner is None or not _may_begin_mark(text[begin : inner.start()]):
                self._show(text[at : begin + 1])
                return begin + 1, False
            begin = inner.start()
            found = _MARK.match(text, begin, partial=not last)
        if found.partial or (found.end() == len(text) and not last):
            return at, True
        if self._is_mention(found, text[at:begin], text[found.end() : found.end() + 1]):
            self._show(text[at : found.end()])
        else:
            self._joined = text[at:begin]
            self.violations += 1
            self._block, self._line = _block_of(found), ""
            self.removed_blocks += self._block is not None and found.lastgroup != "thought"
            if found["thought_end"]:
                self._end_thought()
        return found.end(), False

    def _is_mention(self, found: regex.Match[str], prefix: str, follows: str) -> bool:
        """Whether a sentence mentions the mark: "Use <think> to start"."""
        block, mark, before = _block_of(found), found[0].lower(), self._line + prefix
        if mark[-1] not in ">]" or not _AFTER_MENTION.match(follows):
            return False
        if found.lastgroup == "token":
            return bool(_WITHIN_SENTENCE.search(before))
        if not _BEFORE_MENTION.search(before) or (block is None and mark not in self._mentioned):
            return False
        if block is None:
            return True
        self._mentioned.add(_ENDS_OF.get(mark) or mark.replace("<", "</").replace("[", "[/"))
        return True

    def _read_code(self, text: str, at: int, *, last: bool) -> tuple[int, bool]:
        """Show code in backticks, or the first line of its fence."""
        rest = text[at : at + _LONGEST]
        marks = rest[: len(rest) - len(rest.lstrip("`"))]
        after_marks = at + len(marks)
        if len(marks) == _LONGEST:  # longer sequences are not code
            self._show(marks)
            return after_marks, False
        line_end = text.find("\n", after_marks)
        is_whole_line = last or line_end >= 0
        line = text[after_marks : line_end if line_end >= 0 else len(text)]
        closing = re.search(rf"(?<!`){marks}(?!`)", line)
        if closing and (is_whole_line or closing.end() < len(line)):
            return self._show_code(text, at, after_marks + closing.end()), False
        if not is_whole_line:
            return at, True
        if len(marks) < 3 or "`" in line:
            self._show(marks)
            return after_marks, False
        self._fence = len(marks)
        return self._show_code(text, at, after_marks + len(line) + (line_end >= 0)), False

    def _end_of_fence(self, text: str, at: int, *, last: bool) -> int:
        begin = (r"(?:(?<=\n)|\A)" if self._fence_begins_line and not at else r"(?<=\n)") + r"[ \t>]*"
        ticks = rf"`{{{self._fence},}}+"
        if end := re.compile(rf"{begin}{ticks}(?=[^\w`])|{ticks}[ \t]*(?=\n)").search(text, at):
            self._fence = 0
            return end.end()
        held = None if last else re.compile(rf"(?:{begin})?`+[ \t]*\Z|{begin}\Z").search(text, at)
        return held.start() if held else len(text)

    def _show_code(self, text: str, at: int, end: int) -> int:
        if end > at:
            self._fence_begins_line = text[end - 1] == "\n"
            self._show(text[at:end], is_code=True)
        return end

    def _show(self, text: str, *, is_code: bool = False) -> None:
        if not text:
            return
        self._line = (self._line + text).rpartition("\n")[2][-_LINE_CHARS:]
        if self._beginning is None:
            self._append_with_space(text)
            return
        self._beginning += text
        follows_fence = not is_code and self._beginning.lstrip().startswith("```") and text.strip()
        if follows_fence or not _MAY_BE_CALL.fullmatch(self._beginning, partial=True):
            text, self._beginning = self._beginning, None
            self._append_with_space(text)

    def _append_with_space(self, text: str) -> None:
        """Show a text with the white space before it; keep the white space after it."""
        words = text.strip()
        if not words:
            self._space += text
            return
        space = self._space + text[: len(text) - len(text.lstrip())]
        if self.violations > self._cut_at_text:  # line breaks before and after a removed piece add up
            space = re.sub(r"\n{3,}", "\n\n", space)
        self._space = text[len(text.rstrip()) :]
        self._cut_at_text = self.violations
        self._shown.append(space + words if self._started else words)
        self._released.append(self._shown[-1])
        self._started = True

    def _end_thought(self) -> None:
        self._thought = self.text
        self._space = "\n\n" if self._started else ""
        self._shown, self._beginning = [], ""
        self._cut_at_thought = self.violations


def _block_of(found: regex.Match[str]) -> _Block | None:
    """Return the block that a mark begins; None if the mark has no end mark."""
    match found.lastgroup:
        case "frame":
            return _Block(re.escape(_ENDS_OF[found[0].lower()]))
        case "thought":
            return _Block(THOUGHT_END)
        case "header":
            return _Block(HEADER_END, is_header=True)
        case "tag":
            return _Block(f"</{re.escape(found['tag'])}>")
        case "pair":
            bar = re.escape(found["bar"])
            return _Block(rf"<{bar}{re.escape(found['before'])}end{re.escape(found['after'])}{bar}>")
    return None


def _is_line_of_calls(line: str) -> bool:
    return bool(_LINE_OF_CALLS.match(line) and _LIST_OF_CALLS.fullmatch(re.sub(CONTROL, "", line).strip()))


def _is_only_calls(text: str) -> bool:
    return bool(_TOOL_FENCE.match(text)) or _is_line_of_calls(text.strip() + "\n") or is_only_calls(text)


def _may_begin_mark(text: str) -> bool:
    found = _MARK.fullmatch(text, partial=True)
    return bool(found and found.partial)
