"""Tool calls in fenced blocks, cut out of a text while it arrives."""

import json
import re
from collections.abc import Iterator

from models.decoding.call_forms import says_call

_TICKS = re.compile(r"`+")
_FIRST_LINE = re.compile(r"(`{3,})([^\n`]{0,100})")
_MAY_BE_CALL = re.compile(r'\s*(?:\[\s*)?(?:\{\s*(?:".*)?)?', re.DOTALL)
"""The beginning of a JSON object, or of a list of them; also of anything that may still become one."""

_LAST_LINE = re.compile(r"\n[ \t]*```")
_DECODER = json.JSONDecoder()


class FenceFilter:
    """Cuts fenced tool calls out of a text; holds back only what may still become one."""

    def __init__(self) -> None:
        self.found = 0
        self._held = ""
        self._in_code = False
        """Whether a fenced block has begun and was shown: the next bare fence ends it."""

    def feed(self, text: str) -> Iterator[str]:
        """Return what is in no fenced tool call, in order."""
        return self._sift(self._held + text, last=False)

    def close(self) -> Iterator[str]:
        """Return what was held back: the text is at its end."""
        return self._sift(self._held, last=True)

    def restart(self) -> None:
        """Forget what is held back: the text begins anew."""
        self._held, self._in_code = "", False

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
        if self._in_code and not first[2][:1].isalnum():
            self._in_code = False
            return text[at:body], body
        if first[2].strip().lower().startswith("tool"):
            end = text.find("```", body)
            return self._cut(end + 3) if end != -1 else self._cut(len(text)) if last else ("", None)
        if _MAY_BE_CALL.fullmatch(text, body) and (call := self._call(text, body, last=last)):
            return call
        self._in_code = True
        return text[at:body], body

    def _call(self, text: str, body: int, *, last: bool) -> tuple[str, int | None] | None:
        """Return the same for a fence whose inside begins like a call; None when it is none."""
        begin = len(text) - len(text[body:].lstrip())
        try:
            value, end = _DECODER.raw_decode(text, begin)
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


def may_be_call(text: str) -> bool:
    """Whether a text that begins like this may come to be a tool call as JSON."""
    return bool(_MAY_BE_CALL.fullmatch(text))


def is_call(text: str) -> bool:
    """Whether the whole of `text` is a JSON object, or a list of them, that reads like a tool call."""
    try:
        value = json.loads(text.strip())
    except (ValueError, RecursionError):
        return False
    return _reads_like_call(value)


def _reads_like_call(value: object) -> bool:
    calls = value if isinstance(value, list) else [value]
    return bool(calls) and all(map(says_call, calls))
