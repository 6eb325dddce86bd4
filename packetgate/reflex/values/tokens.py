"""Split a request into tokens: words, numbers, paths, URLs, e-mail addresses, dates, identifiers and quoted text."""

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

from packetgate.reflex.values.dates import find_time_zone
from packetgate.tools.risk.sql import statement_in

_MAX_CHARS = 100_000  # only these characters of a request are split into words; quoted text is also found after them
_MAX_PIECE = 300  # a longer sequence of characters without spaces is one word or URL

CJK = r"\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\u3000-\u3003\uff01-\uff20"
_CHUNK = re.compile(rf"(?<!\S)[{CJK}]{{1,30}}\.[A-Za-z]\w{{0,7}}(?![\w.])|[{CJK}]|[^\s{CJK}]+")
_CJK_WORD = re.compile(rf"[{CJK}]")
_CJK_MARKS = frozenset("，。！？：；、　（）")

_CLOSING = {
    '"': '"“”',
    "“": "”“",
    "„": "“”",
    "«": "»",
    "»": "«",
    "「": "」",
    "『": "』",
    "‘": "’",
    "'": "'",
    "`": "`",
    "《": "》",
}  # fmt: skip
_OPENING = re.compile(r"```|[\"“„«»「『《`‘']")
_LETTER = re.compile(r"[A-Za-z0-9_À-ɏ]")

_URL = re.compile(r"(?:[a-z][a-z0-9+.-]{1,15}+://|www\.)[^\s<>\"`]+", re.IGNORECASE)
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_DATE = re.compile(
    r"\d{4}-\d{1,2}-\d{1,2}(?:T\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?|\d{1,4}/\d{1,2}/\d{1,4}"
    r"|\d{1,2}\.\d{1,2}\.(?:\d{4})?|\d{4}-\d{2}(?!\d)"
)
_TIME = re.compile(r"\d{1,2}:\d{2}(?::\d{2})?(?:[ap]\.?m\.?)?|\d{1,2}[ap]\.?m\.?", re.IGNORECASE)
_NUMBER = re.compile(
    r"(?P<sign>[-+−]?)(?P<currency>[$€£¥₹]?)(?P<digits>(?:\d{1,3}(?:[,']\d{3})+|\d+)(?:\.\d+)?|\.\d+)"
    r"(?P<power>[eE][-+]?\d+)?(?P<unit>%|st|nd|rd|th|[°µ]?[A-Za-z]{1,4}(?:/[a-z]{1,3})?|[€£¥°])?"
)
_UNITS = frozenset(
    "% st nd rd th kg g mg lb lbs oz t km m cm mm mi ft in nm kb mb gb tb b k s sec secs min mins ms h hr hrs d w hz"
    " khz mhz ghz v kv w kw mw kwh j kj n pa kpa c f l ml x km/h m/s mph px pt rpm € £ ¥ ° °c °f days day".split()
)
_RANGE = re.compile(r"(\d+(?:\.\d+)?)(?:[-–—x×]|\.\.)(\d+(?:\.\d+)?)")
_PATH = re.compile(
    r"(?:[A-Za-z]:[\\/]|~/|\.{1,2}/|/)(?:[\w.@+*?=-]+[\\/])*[\w.@+*?=-]*|(?:[\w.@+*?=-]+[\\/])+[\w.@+*?=-]*"
    r"|~|\.{1,2}|(?:[\w@+*-]+\.)+[A-Za-z][A-Za-z0-9]{0,7}|\.[A-Za-z][\w.-]+|\*\.\w+|\*\*"
)
_FILES = frozenset("README LICENSE LICENCE Makefile Dockerfile CHANGELOG CONTRIBUTING".split())
_NOT_PATHS = frozenset(
    "and/or e.g i.e a.m p.m u.s u.k either/or his/her he/she w/o yes/no true/false km/h m/s on/off n/a".split()
)
_IDENTIFIER = re.compile(
    r"(?=[^\W_]*[_\d]|[a-z]+[A-Z]|[A-Z]{2,}[a-z]+[A-Z]|#)#?[\w]+(?:[-.:#][\w]+)*|(?:[\w]+-)+\w*\d\w*"
)
_LEADING = "([{<,;:!?¿¡=|\"'’”“>…–—"
_TRAILING = ")]}>,;:!?.…|\"'’”“<=–—"
_INNER = re.compile(r"[,;:()\[\]{}|=<>\"“”…]+|(?<=\w)/(?=\w)|–|—")


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a request: a word, number, path or other smallest part."""

    start: int
    end: int
    text: str  # without quotes around it
    kind: str  # `word`, `name`, `number`, `path`, `url`, `email`, `date`, `time`, `identifier`, `quoted` or `code`
    before: str = ""  # the characters after the previous token, without spaces


def tokenize(text: str) -> list[Token]:
    """Return the tokens of a request in order, in linear time."""
    found: list[Token] = []
    last = 0
    for start, end, inner_start, inner_end, kind in _quotes_and_statements(text):
        found.extend(_plain(text, last, start))
        found.append(Token(start, end, text[inner_start:inner_end], kind))
        last = end
    found.extend(_plain(text, last, len(text)))
    return [*_with_gaps(text, found)]


def _quotes_and_statements(text: str) -> Iterator[tuple[int, int, int, int, str]]:
    quotes, statement = [*_quotes(text)], statement_in(text)
    if statement is None or any(start <= statement[0] < end for start, end, *_ in quotes):
        yield from quotes
        return
    first, last = statement
    yield from sorted([*(one for one in quotes if not first <= one[0] < last), (first, last, first, last, "code")])


def _with_gaps(text: str, found: list[Token]) -> Iterator[Token]:
    last = 0
    for token in found:
        gap = text[last : token.start]
        before = "\n" if "\n\n" in gap else "".join(gap.split())[:8]
        yield Token(token.start, token.end, token.text, token.kind, before)
        last = token.end


def _quotes(text: str) -> Iterator[tuple[int, int, int, int, str]]:
    closings = {mark: _closings(text, marks) for mark, marks in _CLOSING.items()} | {"```": _closings(text, "```")}
    last = 0
    for opening in _OPENING.finditer(text):
        mark, start = opening.group(), opening.start()
        if start < last or (start and mark in "\"'«»“" and _LETTER.match(text[start - 1])):
            continue
        inside = opening.end()
        places = closings[mark]
        at = bisect_left(places, inside + 1)
        if not places[at:] and mark in '"“' and _LETTER.match(text[inside : inside + 1]):
            last = len(text)
            yield start, last, inside, last, "quoted"
            return
        if at == len(places) or (mark == "'" and "\n" in text[inside : min(places[at], inside + 2_000)]):
            continue
        close = places[at]
        kind = "code" if "`" in mark else "quoted"
        last = close + (3 if mark == "```" else 1)
        yield start, last, inside, close, kind


def _closings(text: str, marks: str) -> list[int]:
    pattern = re.escape(marks) if marks == "```" else f"[{marks}]"
    return [
        one.start()
        for one in re.finditer(pattern, text)
        if marks not in "’'"
        or not (
            text[one.end() : one.end() + 1].isalnum() or (one.start() and text[one.start() - 1 : one.start()].isspace())
        )
    ]


def _plain(text: str, start: int, end: int) -> Iterator[Token]:
    for chunk in _CHUNK.finditer(text, start, min(end, _MAX_CHARS)):
        if len(chunk.group()) > 1 and _CJK_WORD.match(chunk.group()):
            yield Token(chunk.start(), chunk.end(), chunk.group(), "path")
        elif _CJK_WORD.match(chunk.group()):
            if chunk.group() not in _CJK_MARKS:
                yield Token(chunk.start(), chunk.end(), chunk.group(), "word")
        else:
            yield from _piece(text, chunk.start(), chunk.end())


def _piece(text: str, start: int, end: int, depth: int = 0) -> Iterator[Token]:
    start, end = _stripped(text, start, end)
    if start >= end:
        return
    piece = text[start:end]
    if _URL.fullmatch(piece):
        yield Token(start, end, piece, "url")
    elif len(piece) > _MAX_PIECE:
        yield Token(start, end, piece, "word")
    elif between := _RANGE.fullmatch(piece):
        for group in (1, 2):
            yield Token(start + between.start(group), start + between.end(group), between[group], "number")
    elif (kind := _kind_of(piece)) != "word":
        yield Token(start, end, piece, kind)
    elif depth < 2 and (cuts := [*_INNER.finditer(piece)]):
        last = start
        for cut in cuts:
            yield from _piece(text, last, start + cut.start(), depth + 1)
            last = start + cut.end()
        yield from _piece(text, last, end, depth + 1)
    else:
        yield Token(start, end, piece, "word")


def _stripped(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start] in _LEADING:
        start += 1
    while start < end and text[end - 1] in _TRAILING:
        if text[end - 1] == ")" and "(" in text[start : min(end, start + _MAX_PIECE)]:
            break
        end -= 1
    if text[max(start, end - 2) : end].lower() in {"'s", "’s"}:
        end -= 2
    return start, end


def _kind_of(piece: str) -> str:
    if _NUMBER.fullmatch(piece) and number_parts(piece):
        return "number"
    if _DATE.fullmatch(piece):
        return "date"
    if _TIME.fullmatch(piece):
        return "time"
    if "@" in piece and _EMAIL.fullmatch(piece):
        return "email"
    if piece in _FILES or (
        any(mark in piece for mark in "./\\~*") and piece.lower() not in _NOT_PATHS and _PATH.fullmatch(piece)
    ):
        return "name" if "." not in piece and find_time_zone(piece) else "path"
    if _IDENTIFIER.fullmatch(piece):
        return "identifier"
    return "word"


def number_parts(piece: str) -> tuple[int | float, str, str] | None:
    """Return (value, unit, currency) of a number such as `$1,200.50`, `5%`, `20kg`, `3rd` or `10k`, or None."""
    match = _NUMBER.fullmatch(piece)
    if match is None or len(piece) > 40:
        return None
    unit = (match["unit"] or "").lower()
    if unit and unit not in _UNITS:
        return None
    digits = match["digits"].replace(",", "").replace("'", "")
    whole = "." not in digits and not match["power"]
    value: int | float = int(digits) if whole else float(digits + (match["power"] or ""))
    if match["sign"] in {"-", "−"}:
        value = -value
    if unit == "k" and not match["power"]:
        return value * 1000, "", match["currency"]
    return value, "" if unit in {"st", "nd", "rd", "th"} else unit, match["currency"]
