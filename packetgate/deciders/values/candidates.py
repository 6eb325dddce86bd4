"""What may fill a parameter: each stretch of the request that its schema can take, and as which value."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from packetgate.deciders.values.conversion import COMMANDS, convert, number_as, split_command, stems_in, valid
from packetgate.deciders.values.dates import has_clock, moment_of, seconds_of, written, zone_of
from packetgate.deciders.values.mentions import EDGES, Reading, Span, unit_of
from packetgate.deciders.values.schema import Parameter
from packetgate.tools.text.verbs import EXECUTE_VERBS
from packetgate.tools.text.words import words_of

LEADING = EDGES | EXECUTE_VERBS | {"off", "up", "command", "program"}
"""Words that a command stands after."""
WAYS = tuple(
    "none written moment number share unit duration choice hinted yes no list each literal keyed command given"
    " part".split()
)
"""How a value comes out of a stretch of text."""
MAX_CANDIDATES = 1_500
_NEGATIONS = frozenset(
    "no not don't dont doesn't without never exclude excluding disable disabled skip ignore except off non nicht ohne"
    " kein keine sans sin pas 不 不要".split()
)
_AND = frozenset("and & or und oder y o et ou plus as 和 与".split())
_PAIR = re.compile(r"([A-Za-z][\w.-]*)/([\w-]+)")
"""Two names joined as one, such as a repository's owner and its name; no file's path, whose last part has an ending."""
_DIGITAL = re.compile(r"^[^\d]{0,12}\d{1,4}[-/. ]\w{1,9}[-/., ]+\d{1,4}$")
_YEAR = re.compile(r"(?<!\d)\d{4}(?!\d)")
_BRACKETED = re.compile(r"[\[{(]")
_NAMED = re.compile(
    r"(?<!\w)([A-Za-z_]\w{0,60})\s?=\s?(\"[^\"\n]{0,500}\"|'[^'\n]{0,500}'|[^\s,;]{1,500}(?:,(?!\w+\s?=)[^\s,;]{1,200}){0,50})"
)

_PER_UNIT = {
    **dict.fromkeys("millisecond ms".split(), ("time", 0.001)),
    **dict.fromkeys("second sec s".split(), ("time", 1.0)),
    **dict.fromkeys("minute min mins".split(), ("time", 60.0)),
    **dict.fromkeys("hour hr h".split(), ("time", 3600.0)),
    **dict.fromkeys("day d".split(), ("time", 86400.0)),
    **dict.fromkeys("week".split(), ("time", 604800.0)),
    **dict.fromkeys("month".split(), ("time", 2592000.0)),
    **dict.fromkeys("year".split(), ("time", 31536000.0)),
    **dict.fromkeys("byte b".split(), ("bytes", 1.0)),
    **dict.fromkeys("kb kilobyte".split(), ("bytes", 1024.0)),
    **dict.fromkeys("mb megabyte".split(), ("bytes", 1048576.0)),
    **dict.fromkeys("gb gigabyte".split(), ("bytes", 1073741824.0)),
    **dict.fromkeys("mm millimeter millimetre".split(), ("length", 0.001)),
    **dict.fromkeys("cm centimeter centimetre".split(), ("length", 0.01)),
    **dict.fromkeys("m meter metre".split(), ("length", 1.0)),
    **dict.fromkeys("km kilometer kilometre".split(), ("length", 1000.0)),
    **dict.fromkeys("g gram".split(), ("mass", 1.0)),
    **dict.fromkeys("kg kilogram kilo".split(), ("mass", 1000.0)),
}


@dataclass(frozen=True, slots=True)
class Candidate:
    """A value that may fill a parameter, and where it was read."""

    value: Any
    way: str
    span: Span | None = None
    strength: float = 0.0
    """How well the text agrees with a choice or an example, 0 to 1; of the parts of a name, the last is 1."""
    negated: bool = False


NONE = Candidate(None, "none")
"""That nothing of the request fills a parameter."""


def candidates(reading: Reading, parameter: Parameter, now: datetime | None = None) -> list[Candidate]:
    """Return all that may fill a parameter, `NONE` first."""
    found = [NONE]
    seen: set[tuple[str, int, int]] = set()
    for one in _found(reading, parameter, now):
        place = (one.span.first, one.span.last) if one.span else (-1, -1)
        key = (repr(one.value), *place)
        if key not in seen and valid(one.value, parameter.schema):
            seen.add(key)
            found.append(one)
            if len(found) >= MAX_CANDIDATES:
                break
    return found


def keyed_in(text: str) -> dict[str, str]:
    """Return the `key=value` pairs of a request, without quotes around the values."""
    return {key: value.rstrip("?!.").strip("\"'") for key, value in _NAMED.findall(text[:20_000])}


def _found(reading: Reading, parameter: Parameter, now: datetime | None) -> Iterator[Candidate]:
    kind = parameter.type
    if kind == "enum":
        yield from _choices(reading, parameter)
    elif kind in {"integer", "number"}:
        yield from _numbers(reading, parameter, whole=kind == "integer")
    elif kind == "boolean":
        yield from _booleans(reading, parameter)
    elif kind == "array":
        yield from _arrays(reading, parameter, now)
    elif kind == "object":
        yield from _literals(reading, dict)
    else:
        if kind == "any":
            yield from _numbers(reading, parameter, whole=False)
        yield from _strings(reading, parameter, now)


def _strings(reading: Reading, parameter: Parameter, now: datetime | None) -> Iterator[Candidate]:
    examples = {tuple(stems_in(example)): example for example in parameter.examples}
    for span in reading.spans:
        hinted = examples.get(tuple(stems_in(span.text))) if examples and span.last - span.first <= 4 else None
        if span.kind in {"date", "time"} or (span.kind == "quoted" and _DIGITAL.search(span.text)):
            yield from _moments(reading, span, parameter, now)
        zone = zone_of(span.text) if parameter.takes_zone and span.last - span.first <= 3 else None
        yield Candidate(zone or span.text, "written", span, float(hinted is not None or zone is not None))
        if span.kind == "path" and (pair := _PAIR.fullmatch(span.text)) and zone_of(span.text) is None:
            yield from (Candidate(name, "part", span, float(at)) for at, name in enumerate(pair.groups()))
        if zone is None and hinted is not None and hinted != span.text:
            yield Candidate(hinted, "hinted", span, 1.0)


def _moments(reading: Reading, span: Span, parameter: Parameter, now: datetime | None) -> Iterator[Candidate]:
    """Yield a date or a time in the format that is asked for, if it holds all that the format tells."""
    wanted = parameter.time_format or ("HH:MM" if span.kind == "time" else "YYYY-MM-DD")
    of_day, of_date, named = "HH" in wanted, "DD" in wanted or "MM-" in wanted, {one.kind for one in reading.mentions}
    if of_day and not has_clock(span.text) and (not of_date or "time" in named):
        return
    if of_date and span.kind == "time" and ("date" in named or now is None):
        return
    moment = moment_of(_with_year(reading, span), now)
    if moment is None:
        return
    yield Candidate(written(moment, wanted), "moment", span, float(bool(parameter.time_format)))


def _with_year(reading: Reading, span: Span) -> str:
    """Return what a date says, with the year of the date that it reaches to: it is said once for both."""
    if _YEAR.search(span.text):
        return span.text
    ends = (one for one in reading.mentions if one.kind == "date" and 0 <= one.first - span.last <= 1)
    year = next((found[0] for one in ends if (found := _YEAR.search(one.text))), "")
    return f"{span.text} {year}".rstrip()


def _numbers(reading: Reading, parameter: Parameter, *, whole: bool) -> Iterator[Candidate]:
    said = {*parameter.words, *parameter.about}
    for span in reading.mentions:
        if span.kind in {"duration", "date"}:
            yield from _lengths(span, said, whole)
        if span.kind == "date":
            year = re.search(r"(?<!\d)(\d{4})(?!\d)", span.text)
            if year:
                yield Candidate(int(year[1]), "moment", span)
        if span.number is None:
            continue
        value = number_as(span.number, whole=whole)
        unit = unit_of(reading, span)
        if value is not None:
            yield Candidate(value, "number", span, float(bool(unit) and _unit_stem(unit) in said))
        if unit in {"%", "percent", "per", "prozent"} and not whole:
            yield Candidate(round(span.number / 100, 10), "share", span)
        yield from _converted_units(span, unit, said, whole)


def _unit_stem(unit: str) -> str:
    return stems_in(unit)[0]


def _unit_wanted(said: set[str], dimension: str) -> float | None:
    known = {_unit_stem(name): size for name, (kind, size) in _PER_UNIT.items() if kind == dimension and len(name) > 1}
    sizes = {known[stem] for stem in said if stem in known}
    return sizes.pop() if len(sizes) == 1 else None


def _converted_units(span: Span, unit: str, said: set[str], whole: bool) -> Iterator[Candidate]:
    known = _PER_UNIT.get(unit) or _PER_UNIT.get(unit.removesuffix("s"))
    if known and span.number is not None:
        wanted = _unit_wanted(said, known[0])
        if wanted and wanted != known[1]:
            value = number_as(_tidy(span.number * known[1] / wanted), whole=whole)
            if value is not None:
                yield Candidate(value, "unit", span)


def _tidy(value: float) -> int | float:
    return int(value) if float(value).is_integer() else round(value, 10)


def _lengths(span: Span, said: set[str], whole: bool) -> Iterator[Candidate]:
    """Yield the number of a duration, and what it is in the unit that the parameter asks for."""
    seconds = seconds_of(span.text)
    parts = re.findall(r"([\d.]+|[a-z]+)[ -]([a-z]+)", span.text.lower())
    if seconds is None or not parts:
        return
    own = _PER_UNIT.get(parts[0][1].removesuffix("s"))
    wanted = _unit_wanted(said, "time")
    if own:
        value = number_as(_tidy(seconds / own[1]), whole=whole)
        if value is not None:
            yield Candidate(value, "number", span, float(_unit_stem(parts[0][1]) in said))
    if wanted and (own is None or wanted != own[1]):
        value = number_as(_tidy(seconds / wanted), whole=whole)
        if value is not None:
            yield Candidate(value, "duration", span, 1.0)


def _choices(reading: Reading, parameter: Parameter) -> Iterator[Candidate]:
    """Yield each choice with the words that speak for it best: the same, of the same stem, or beginning alike."""
    for choice in parameter.choices[:60]:
        stems = stems_in(str(choice))
        best: tuple[float, Span | None] = (0.0, None)
        for span in reading.spans:
            if span.last - span.first <= len(stems) + 1:
                agreement = _agreement(span, stems, str(choice))
                if agreement > best[0]:
                    best = (agreement, span)
        if best[1] is not None:
            yield Candidate(choice, "choice", best[1], best[0])


def _agreement(span: Span, stems: Sequence[str], choice: str) -> float:
    if span.text.casefold() == choice.casefold():
        return 1.0
    said = stems_in(span.text)
    if said == [*stems]:
        return 0.95
    if "".join(said) == "".join(stems):
        return 0.9
    if isinstance(span.number, int) and choice == str(span.number):
        return 0.9
    if len(said) == 1 and len(said[0]) > 3 and said[0] in stems:
        return 0.4 + 0.3 / len(stems)
    if len(stems) == 1 and stems[0] in said and len(stems[0]) > 2:
        return 0.6
    if len(said) == len(stems) == 1:
        return _alike(said[0], stems[0])
    return 0.0


def _alike(one: str, other: str) -> float:
    """Return how surely one word stands for another that begins as it does."""
    short, long = sorted((one, other), key=len)
    if len(short) >= 3 and long.startswith(short):
        return 0.7
    common = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(short))
    if common >= 4 and common >= 0.6 * len(long):
        return 0.5
    return 0.3 if len(short) == 1 and long.startswith(short) else 0.0


def _booleans(reading: Reading, parameter: Parameter) -> Iterator[Candidate]:
    """Yield yes, and no where a negation stands before, for each word that the name or the description shares."""
    telling = [word for word in parameter.words if word not in {"is", "has", "should", "includ", "use", "enabl"}]
    made = 0
    for at, stems in enumerate(reading.stems):
        in_name = sum(word in stems for word in telling) / max(1, len(telling))
        in_text = 0.2 * any(stem in parameter.about for stem in stems)
        if (in_name or in_text) and made < 20:
            made += 1
            before = {*reading.words[max(0, at - 4) : at]} - {*words_of(parameter.name)}
            negated = bool(_NEGATIONS & before)
            span = reading.span(at, at + 1, "phrase")
            yield Candidate(not negated, "no" if negated else "yes", span, in_name or in_text, negated)
    for word in YES_NO.intersection(reading.words):
        at = reading.words.index(word)
        yield Candidate(YES_NO_VALUES[word], "yes" if YES_NO_VALUES[word] else "no", reading.span(at, at + 1, "phrase"))


YES_NO_VALUES = {"true": True, "false": False, "yes": True, "no": False, "on": True, "off": False}
YES_NO = frozenset(YES_NO_VALUES) - {"on", "no"}


def _literals(reading: Reading, kind: type) -> Iterator[Candidate]:
    """Yield what is written as JSON in the request: a list in brackets, an object in braces."""
    import json

    decoder, text, made, at = json.JSONDecoder(), reading.text[:20_000], 0, 0
    while made < 20 and (found := _BRACKETED.search(text, at)):
        at = found.end()
        made += 1
        try:
            value, end = decoder.raw_decode(text, found.start())
        except (ValueError, RecursionError):
            continue
        if isinstance(value, kind):
            at = end
            inside = [k for k, token in enumerate(reading.tokens) if found.start() <= token.start < end]
            if inside:
                yield Candidate(value, "literal", reading.span(inside[0], inside[-1] + 1, "rest"))


def _begins(reading: Reading, span: Span) -> bool:
    """Whether a command may begin there: it is set off, or follows a word that leads to it, never a part of itself."""
    before = reading.words[span.first - 1] if span.first else ""
    return span.kind in {"quoted", "code"} or not before or reading.breaks[span.first] or before in LEADING


def _arrays(reading: Reading, parameter: Parameter, now: datetime | None) -> Iterator[Candidate]:
    yield from _literals(reading, list)
    if {*parameter.words} & COMMANDS and parameter.items.type in {"string", "any"}:
        yield from (
            Candidate(split_command(span.text), "command", span) for span in reading.spans if _begins(reading, span)
        )
        return
    items = parameter.items
    if items.type in {"array", "object"}:
        return
    singles = _singles(reading, items, now)
    for run in _lists(reading):
        values = [_item(reading, singles, item) for item in run]
        if None not in values:
            yield Candidate(values, "list", reading.span(run[0][0], run[-1][1], "rest"))
    for kind in sorted({span.kind for span in reading.mentions} - {"duration"}):
        spans = [span for span in reading.mentions if span.kind == kind][:100]
        values = [singles.get((span.first, span.last)) for span in spans]
        if len(values) > 1 and None not in values:
            yield Candidate(values, "each", reading.span(spans[0].first, max(one.last for one in spans), "rest"))
    for (first, last), value in singles.items():
        if value is not None and last - first <= 5:
            yield Candidate([value], "written", reading.span(first, last, "phrase"))


def _singles(reading: Reading, items: Parameter, now: datetime | None) -> dict[tuple[int, int], Any]:
    """Return what each stretch comes to as one item of a list."""
    if items.type in {"string", "any"}:
        return {(one.span.first, one.span.last): one.value for one in _strings(reading, items, now) if one.span}
    singles: dict[tuple[int, int], Any] = {}
    for one in _found(reading, items, now):
        if one.span and one.way in {"number", "choice", "moment"}:
            singles.setdefault((one.span.first, one.span.last), one.value)
    return singles


def _item(reading: Reading, singles: dict[tuple[int, int], Any], item: tuple[int, int]) -> Any:
    if item in singles:
        return singles[item]
    first, last = item
    number = [one for one in reading.mentions if first <= one.first and one.last <= last and one.number is not None]
    return singles.get((number[0].first, number[0].last)) if len(number) == 1 else None


def _lists(reading: Reading) -> Iterator[tuple[tuple[int, int], ...]]:
    """Yield the enumerations of a request as token ranges: `a, b and c`, each end cut in several ways."""
    count, made = min(len(reading.tokens), 400), 0
    at = 0
    while at < count and made < 40:
        items, start = [], at
        while at < count:
            separated = at > start and (
                reading.words[at] in _AND or "," in reading.tokens[at].before or "、" in reading.tokens[at].before
            )
            if at > start and reading.breaks[at]:
                break
            if separated and at > start:
                items.append((start, at))
                at += reading.words[at] in _AND
                start = at
                if at >= count:
                    break
            at += 1
        items.append((start, at))
        items = [item for item in items if item[1] > item[0]]
        if len(items) > 1:
            made += 1
            yield from _cut(reading, items[:60])
        at = max(at, start + 1)


def _cut(reading: Reading, items: list[tuple[int, int]]) -> Iterator[tuple[tuple[int, int], ...]]:
    for start in range(len(items) - 1):
        for end in range(start + 2, len(items) + 1):
            if start and end < len(items):
                continue
            head, tail, middle = items[start], items[end - 1], items[start + 1 : end - 1]
            inner = tuple(_trimmed(reading, item) for item in middle)
            for first in range(max(head[0], head[1] - 5), head[1]):
                if reading.words[first] in EDGES:
                    continue
                for last in range(tail[0] + 1, min(tail[1], tail[0] + 5) + 1):
                    if reading.words[last - 1] not in EDGES:
                        yield ((first, head[1]), *inner, _trimmed(reading, (tail[0], last)))


def _trimmed(reading: Reading, item: tuple[int, int]) -> tuple[int, int]:
    first, last = item
    while last - first > 1 and reading.words[first] in EDGES:
        first += 1
    return first, last


def whole(said: str, parameter: Parameter, now: datetime | None = None) -> Candidate | None:
    """Return an answer as the value of the one parameter asked for; None where it cannot be one."""
    value = convert(said, parameter, now)
    return None if value is None else Candidate(value, "given")
