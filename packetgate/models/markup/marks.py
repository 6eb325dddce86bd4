"""The marks that models write around thoughts and calls: where they begin and end in an answer."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

import regex

from packetgate.models.decoding import formats

LONGEST = 240
"""Characters of the longest mark."""
_FRAMES = tuple(one for one in (*formats.THOUGHTS, *formats.CALLS, *formats.ECHOES) if "`" not in one.begin)
_ENDS_OF = {one.begin.lower(): one.end.lower() for one in _FRAMES}
_CALL_TAG = r"tool_response|tool_use|invoke|tool_calls?|function_calls?|xai:function_call"
_JSON_CALL = r'(?:\[\s*)?\{\s*"(?:action|function|name|tool|tool_name)"'


def _any(marks: Iterable[str]) -> str:
    return "|".join(map(_pattern, sorted(marks, key=len, reverse=True)))


def _pattern(mark: str) -> str:
    escaped = re.escape(mark)
    return f"{escaped[:-1]}{formats.NUMBER}>" if re.search(r"\w>\Z", mark) else escaped


MARK = regex.compile(
    rf"""(?P<thought_end>{_any(one.end for one in formats.THOUGHTS)})
  | (?P<frame>{_any(one.begin for one in _FRAMES)})
  | (?P<header>{_any(formats.CHANNEL_HEADERS)})
  | <(?P<tag>{_CALL_TAG}|function(?==))[^\w-]
  | (?P<gaia><\|\s*start\ of[^|<>]{{0,80}}tool\ call\s*\|>)
  | (?P<bare>{_any(one.begin for one in formats.BARE)})\s*{_JSON_CALL}
  | (?P<closing></(?:{_CALL_TAG})>|{_any(one.end for one in _FRAMES)})
  | (?!<function>\s*(?:[\[{{]|\Z))</?(?P<word>{"|".join(formats.WORDS)})[\s>]
  | (?P<token>{_any(formats.TOKENS)}|{formats.CONTROL})
  | (?P<action>Action:[ \t]*[\w.:/@-]{{1,200}}[ \t]*\n\s*Action\ Input:)
  | (?P<fenced_action>Action:\s*```(?:json)?\s*{_JSON_CALL})
  | (?P<json_action>Action:\s*{_JSON_CALL})""",
    regex.VERBOSE | regex.IGNORECASE,
)
OPENING = regex.compile(
    rf"\s*(?:(?P<glued>{formats.GLUED.begin})(?=[^\W_])|(?P<words>{_any(one.begin for one in formats.OPENINGS[:-1])}))"
)
LIST_LINE = regex.compile(r"\[\s*[^\W\d][\w.]{0,199}\([^\n]{0,4000}\n")
CANDIDATE = re.compile(r"[<\[\u25c1`]|\](?=<|\Z)|A(?=c|\Z)")
_ENDS = {
    "gaia": r"<\|\s{0,9}end of[^|>]{0,200}tool call\s{0,9}\|>",
    "action": "Final Answer:",
    "fenced_action": "```",
    "json_action": "\n\n",
}

_OPEN_QUOTE = "\"'*\u201c\u201e\u00ab\u300c"
BEFORE_MENTION = re.compile(rf"\S.*[\s({_OPEN_QUOTE}]\Z")
WITHIN_SENTENCE = re.compile(rf"[^\s.!?\u3002][ \t][({_OPEN_QUOTE}]?\Z")
AFTER_MENTION = re.compile(r"[ \t.,;:!?)\"'*\u201c\u201d\u00bb\u300d]")
"""What stands around a mark that a sentence mentions."""

_JSON_STRINGS = r'(?P<quote>")|\\.'
_RAW_STRINGS = (
    r'(?P<quote><\|"\|>|<escape>|</?(?:\w+:|\uff5c\w+\uff5c[ ]?)?parameter\b[^<>]*>'
    r"|</?(?:longcat_)?arg_value>|<\|(?:open|close)\|>argument\b[^<>]*<\|sep\|>)"
)
"""What quotes text: in blocks that begin like JSON, and in others."""
_VALUE = re.compile(r"<([^<>]*?(?:parameter|arg_value))\b")
NESTED = re.compile(r"[<\[\u25c1]|\](?=<)")


@dataclass
class Block:
    """What a mark begins, and is cut out with it."""

    end: str
    """Pattern of its end; without one, the block goes on to the end of the text."""
    quote: str | None = None
    """What ends the string that is open; None before it shows whether the block is JSON."""
    is_json: bool = False
    is_header: bool = False

    def skip(self, text: str, at: int) -> tuple[int, "Block | None"]:
        """Return how much of the block was read, and the block that goes on. A quoted end does not count."""
        if self.is_header:
            end = text.find(formats.HEADER_END, at)
            if end < 0:
                return max(at, len(text) - LONGEST), self
            hides = re.search("analysis|to=", text[at:end])
            return end + len(formats.HEADER_END), Block(formats.CHANNEL_END) if hides else None
        if self.quote is None and (begun := re.compile(r"\S").search(text, at)):
            self.quote, self.is_json = "", begun[0] in "{["
        strings = _JSON_STRINGS if self.is_json else _RAW_STRINGS
        for token in re.compile(f"{strings}|(?P<end>{self.end})", re.IGNORECASE | re.DOTALL).finditer(text, at):
            if token["end"] is not None and not self.quote:
                return token.end(), None
            at = token.end()
            if quote := token["quote"]:
                self.quote = _quote_after(quote, self.quote or "")
        return max(at, len(text) - LONGEST), self


def block_of(found: regex.Match[str]) -> Block | None:
    """Return the block that a mark begins; None if it stands alone."""
    kind, mark = found.lastgroup, plain(found[0])
    if kind == "frame":
        return Block(_pattern(_ENDS_OF[mark]))
    if kind == "tag":
        return Block(f"</{found['tag']}{formats.NUMBER}>")
    if kind == "bare":
        return Block(f"</{found['bare'][1:]}", "", is_json=True)
    if kind == "header":
        return Block(formats.HEADER_END, is_header=True)
    if kind in {"fenced_action", "json_action"}:
        return Block(_ENDS[kind], "", is_json=True)
    return Block(_ENDS[kind]) if kind in _ENDS else None


def plain(mark: str) -> str:
    """Return a mark in lower case, without a checkpoint's number."""
    return re.sub(f"{formats.NUMBER}>$", ">", mark.lower())


def end_of(mark: str) -> str:
    """Return the mark that ends a frame; empty if it begins none."""
    return _ENDS_OF.get(mark, "")


def may_begin(text: str) -> bool:
    """Whether a text may be the beginning of a mark."""
    found = MARK.fullmatch(text, partial=True)
    return bool(found and found.partial)


def _quote_after(mark: str, open_quote: str) -> str:
    """Return what ends the string that is open after this mark; empty if none is."""
    if open_quote or mark.startswith(("</", "<|close|>")):
        return "" if mark == open_quote else open_quote
    if value := _VALUE.match(mark):
        return f"</{value[1]}>"
    return "<|close|>argument<|sep|>" if mark.startswith("<|open|>") else mark
