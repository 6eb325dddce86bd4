"""Find the spans of a request that may be values: typed mentions, names, and sequences of words."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from packetgate.reflex.values.dates import find_time_spans
from packetgate.reflex.values.tokens import Token, number_parts, tokenize
from packetgate.tools.text.values import NUMBER_WORDS
from packetgate.tools.text.words import stem_of, words_of

_MAX_TOKENS = 160  # sequences of words are searched in this number of tokens
_MAX_WORDS = 8  # words of a sequence that does not reach the end of its sentence
KINDS = "quoted code url email path number date time duration identifier name phrase rest".split()
TYPED = frozenset(KINDS) - {"name", "phrase", "rest"}
EDGES = frozenset(
    "a about after all also am an and any are as at be because before been being between but by can could did do does"
    " for from had has have he her here his how i if in into is it its me my of on onto or our please she should so"
    " than that the their them then there these they this those through to too under until up using via was we were"
    " what when where which while who whose why will with within without would you your called named titled saying"
    " says mention mentions mentioning containing contains regarding matching und oder der die das den dem ein eine"
    " einen mit von zu im am auf für el la los las un una de del y o en con por para le les des du et ou à dans pour"
    " avec sur 的 了 在 把 和 到 从 请".split()
)
"""Words that no value begins or ends with, except in names."""
_JOINING = frozenset("of the and de la le du des von van der for in & 's a an to y et und on".split())
_ENDS = frozenset(".;:?!\n。")
_SCALES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000, "dozen": 12,
    "mio": 1_000_000, "millionen": 1_000_000, "millones": 1_000_000, "trillion": 10**12}  # fmt: skip
_NUMBERS = (
    NUMBER_WORDS
    | dict(zip("twenty thirty forty fifty sixty seventy eighty ninety".split(), range(20, 100, 10), strict=True))
    | dict(zip("一二三四五六七八九十", range(1, 11), strict=True))
)
_SYNONYMS = {
    stem: synonym
    for synonym, stems in {
        "first": "head top begin initi erst ersten erste primera primeras primeros premier premiers premières 前",
        "last": "tail final bottom letzt letzten letzte última últimas últimos dernier derniers dernière dernières",
        "foot": "feet",
        "person": "peopl",
        "child": "children",
    }.items()
    for stem in stems.split()
}


@dataclass(frozen=True, slots=True)
class Span:
    """A sequence of tokens that may be a value."""

    first: int  # index of its first token
    last: int  # index after its last token
    kind: str
    text: str  # without quotes around it
    start: int  # offset of its first character
    end: int  # offset after its last character
    number: float | None = None
    unit: str = ""

    def overlaps(self, other: "Span") -> bool:
        """Return whether the spans share a token."""
        return self.first < other.last and other.first < self.last


class ParsedRequest:
    """The tokens of a request, and the spans over them."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = _with_times(text, tokenize(text))
        self.words = [token.text.lower() for token in self.tokens]
        self.stems = [frozenset(_stems(token)) for token in self.tokens]
        self.breaks = [bool(_ENDS & {*token.before}) for token in self.tokens] + [True]
        self.sentences = [
            is_break and "." in token.before for is_break, token in zip(self.breaks, self.tokens, strict=False)
        ]
        self.mentions = tuple(sorted(_mentions(self), key=lambda span: (span.first, -span.last)))
        """Typed spans and names, in order."""
        self.spans = tuple(_spans(self))
        """All spans, without duplicates."""

    def span(self, first: int, last: int, kind: str, number: float | None = None, unit: str = "") -> Span:
        """Return the span of the tokens from `first` up to `last`."""
        start, end = self.tokens[first].start, self.tokens[last - 1].end
        text = self.tokens[first].text if last - first == 1 else self.text[start:end]
        return Span(first, last, kind, text, start, end, number, unit)

    def unit_of(self, span: Span) -> str:
        """Return the unit of a number: the unit attached to it, or the next word; may be empty."""
        if span.unit or span.last >= len(self.tokens):
            return span.unit
        following = self.tokens[span.last]
        return self.words[span.last] if not following.before and following.kind == "word" else ""


@lru_cache(maxsize=256)
def parse_request(text: str) -> ParsedRequest:
    """Return the tokens and spans of a text; cached."""
    return ParsedRequest(text)


def unify_synonym(stem: str) -> str:
    """Return the common stem of a stem's synonyms, such as `first` for `top` and `head`."""
    return _SYNONYMS.get(stem, stem)


def _stems(token: Token) -> list[str]:
    if token.kind in {"quoted", "code", "url", "email"}:
        return []
    words = words_of(token.text) if token.text.isascii() else [token.text.lower()]
    return [unify_synonym(stem_of(word)) for word in words[:6]]


def _with_times(text: str, tokens: list[Token]) -> list[Token]:
    times = {}
    for start, end, kind in find_time_spans(text[: max((token.end for token in tokens), default=0)]):
        times[start] = (end, kind)
    joined: list[Token] = []
    until = -1
    for token in tokens:
        if token.start < until and token.kind not in {"quoted", "code"}:
            continue
        if token.start in times and token.kind in {"word", "number", "date", "time", "identifier", "path"}:
            end, kind = times[token.start]
            if end >= token.end or kind == "date":
                until = end
                end = max(end, token.end)
                joined.append(Token(token.start, end, text[token.start : end], kind, token.before))
                continue
        joined.append(token)
    return joined


def _mentions(reading: ParsedRequest) -> Iterator[Span]:
    until = 0
    for at, token in enumerate(reading.tokens):
        if at >= until and (number := _number_at(reading, at)):
            value, unit, until = number
            yield reading.span(at, until, token.kind if token.kind in {"quoted", "code"} else "number", value, unit)
        elif token.kind not in {"word", "number"}:
            yield reading.span(at, at + 1, token.kind)
    yield from _names(reading)


def _number_at(reading: ParsedRequest, at: int) -> tuple[float, str, int] | None:
    """Return the number that begins at a token, its unit, and the index after it; None if no number begins there."""
    tokens, words, last = reading.tokens, reading.words, at + 1
    if tokens[at].kind in {"number", "quoted", "code"}:
        parts = number_parts(tokens[at].text)
    else:
        value = _NUMBERS.get(words[at])
        following = words[last] if last < len(words) else ""
        if value and value >= 20 and (ones := _NUMBERS.get(following, 10)) < 10:  # `twenty five`
            value, last = value + ones, last + 1
        parts = (value, "", "") if value else None
    if parts is None:
        return None
    scale = _SCALES.get(words[last]) if last < len(tokens) and not tokens[last].before else None
    return parts[0] * (scale or 1), parts[1], last + 1 if scale else last


def _names(reading: ParsedRequest) -> Iterator[Span]:
    tokens, at = reading.tokens, 0
    while at < len(tokens):
        if not _is_capitalised(tokens[at]):
            at += 1
            continue
        last = end = at + 1
        while end < len(tokens) and end - at < 10 and not tokens[end].before.strip("'’s-"):
            if _is_capitalised(tokens[end]) or tokens[end].kind == "number":
                last = end + 1
            elif reading.words[end] not in _JOINING:
                break
            end += 1
        if not (reading.breaks[at] or at == 0) or last - at > 1:
            yield reading.span(at, last, "name")
        at = last


def _is_capitalised(token: Token) -> bool:
    return token.kind == "word" and token.text[:1].isupper()


def _spans(reading: ParsedRequest) -> Iterator[Span]:
    tokens, count = reading.tokens, min(len(reading.tokens), _MAX_TOKENS)
    seen = set()
    for span in reading.mentions[: 4 * _MAX_TOKENS]:
        if (span.first, span.last) not in seen:
            seen.add((span.first, span.last))
            yield span
    for first in range(count):
        if not _may_begin(reading, first):
            continue
        for last in range(first + 1, min(first + _MAX_WORDS, count) + 1):
            kinds = {tokens[first].kind, tokens[last - 1].kind}
            if last - first > 1 and (reading.breaks[last - 1] or kinds & {"quoted", "code"}):
                break
            may_end = reading.words[last - 1] not in EDGES or tokens[last - 1].text[:1].isupper()
            if (first, last) not in seen and may_end:
                seen.add((first, last))
                is_moment = kinds == {"date", "time"} and last - first <= 3
                yield reading.span(first, last, "date" if is_moment else "phrase")
    yield from _rests(reading, seen)


def _rests(reading: ParsedRequest, seen: set[tuple[int, int]]) -> Iterator[Span]:
    """Yield two spans after each edge word or colon: to the end of the sentence, and to the end of the request."""
    count = len(reading.tokens)
    ends = [at for at in range(1, count + 1) if reading.breaks[at] or at == count]
    yielded = 0
    for first in range(1, count):
        follows_cue = reading.words[first - 1] in EDGES or ":" in reading.tokens[first].before
        if follows_cue and yielded < _MAX_TOKENS:
            sentence = next((end for end in ends if end > first), count)
            for last in {sentence, count}:
                if (first, last) not in seen and last > first:
                    seen.add((first, last))
                    yielded += 1
                    yield reading.span(first, last, "rest")


def _may_begin(reading: ParsedRequest, at: int) -> bool:
    is_capital = reading.tokens[at].text[:1].isupper()
    return reading.words[at] not in EDGES or (is_capital and at > 0 and not reading.breaks[at])
