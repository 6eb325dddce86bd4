"""Find the candidate values of a parameter: each span of the request, converted to a value that the schema accepts."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from packetgate.reflex.values.dates import amount_in, find_time_zone, format_moment, has_clock, parse_moment
from packetgate.reflex.values.mentions import EDGES, ParsedRequest, Span
from packetgate.reflex.values.parameters import COMMAND_STEMS, Parameter, as_number, split_command, stems_in
from packetgate.tools.text.verbs import EXECUTE_VERBS
from packetgate.tools.text.words import words_of

VALUE_WAYS = tuple(
    "none written moment number share unit duration choice hinted yes no list each literal keyed command given"
    " part".split()
)
"""Ways to read a value from text; each is a feature of the scorer."""
MAX_CANDIDATES = 1_500
_BEFORE_COMMANDS = EDGES | EXECUTE_VERBS | {"off", "up", "command", "program"}
_NEGATIONS = frozenset(
    "no not don't dont doesn't without never exclude excluding disable disabled skip ignore except off non nicht ohne"
    " kein keine sans sin pas 不 不要".split()
)
_AND = frozenset("and & or und oder y o et ou plus as 和 与".split())
_PAIR = re.compile(r"([A-Za-z][\w.-]*)/([\w-]+)")
"""Two joined names, such as `owner/repository`; a path's last part has an extension."""
_PERCENT = frozenset({"%", "percent", "per", "prozent"})
_UNITS = tuple(
    frozenset(stem for name in names.split() for stem in stems_in(name))
    for names in (
        "millisecond ms second sec minute min hour hr day week month year",
        "byte kb kilobyte mb megabyte gb gigabyte",
        "mm millimeter millimetre cm centimeter centimetre meter metre km kilometer kilometre mile foot inch",
        "gram kg kilogram kilo pound ounce",
        "celsius fahrenheit kelvin",
    )
)
"""Stems of units, by dimension."""
_YEAR = re.compile(r"(?<!\d)\d{4}(?!\d)")
_KEY_VALUE = re.compile(
    r"(?<!\w)([A-Za-z_]\w{0,60})\s?=\s?(\"[^\"\n]{0,500}\"|'[^'\n]{0,500}'|[^\s,;]{1,500}(?:,(?!\w+\s?=)[^\s,;]{1,200}){0,50})"
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A value that may fill a parameter, and the span that it was read from."""

    value: Any
    way: str  # one of `VALUE_WAYS`
    span: Span | None = None
    strength: float = 0.0  # agreement of the text with a choice or an example, 0 to 1
    negated: bool = False  # whether a negation precedes the span of a boolean


NO_VALUE = Candidate(None, "none")  # the parameter gets no value


def candidates(reading: ParsedRequest, parameter: Parameter, now: datetime | None = None) -> list[Candidate]:
    """Return at most 1,500 candidates of a parameter, `NO_VALUE` first."""
    accepted = [NO_VALUE]
    seen: set[tuple[str, int, int]] = set()
    for candidate in _candidates(reading, parameter, now):
        place = (candidate.span.first, candidate.span.last) if candidate.span else (-1, -1)
        key = (repr(candidate.value), *place)
        if key not in seen and parameter.accepts(candidate.value):
            seen.add(key)
            accepted.append(candidate)
            if len(accepted) >= MAX_CANDIDATES:
                break
    return accepted


def key_values(text: str) -> dict[str, str]:
    """Return the `key=value` pairs of a request. Values have no quotes around them."""
    return {key: value.rstrip("?!.").strip("\"'") for key, value in _KEY_VALUE.findall(text[:20_000])}


def _candidates(reading: ParsedRequest, parameter: Parameter, now: datetime | None) -> Iterator[Candidate]:
    match parameter.type:
        case "enum":
            yield from _choices(reading, parameter)
        case "integer" | "number":
            yield from _numbers(reading, parameter, integer=parameter.type == "integer")
        case "boolean":
            yield from _booleans(reading, parameter)
        case "array":
            yield from _arrays(reading, parameter, now)
        case "object":
            return  # an object is only read from `key=value`, or from the answer to a question
        case "any":
            yield from _numbers(reading, parameter, integer=False)
            yield from _strings(reading, parameter, now)
        case _:
            yield from _strings(reading, parameter, now)


def _strings(reading: ParsedRequest, parameter: Parameter, now: datetime | None) -> Iterator[Candidate]:
    examples = {tuple(stems_in(example)): example for example in parameter.examples}
    for span in reading.spans:
        example = examples.get(tuple(stems_in(span.text))) if examples and span.last - span.first <= 4 else None
        if span.kind in {"date", "time"}:
            yield from _moments(reading, span, parameter, now)
        zone = find_time_zone(span.text) if parameter.takes_zone and span.last - span.first <= 3 else None
        if zone or example or not parameter.takes_zone:
            yield Candidate(zone or span.text, "written", span, float(example is not None or zone is not None))
        if span.kind == "path" and (pair := _PAIR.fullmatch(span.text)):
            yield from (Candidate(name, "part", span, float(at)) for at, name in enumerate(pair.groups()))
        if zone is None and example is not None and example != span.text:
            yield Candidate(example, "hinted", span, 1.0)


def _moments(reading: ParsedRequest, span: Span, parameter: Parameter, now: datetime | None) -> Iterator[Candidate]:
    wanted = parameter.time_format or ("HH:MM" if span.kind == "time" else "YYYY-MM-DD")
    has_time, has_date, kinds = "HH" in wanted, "DD" in wanted or "MM-" in wanted, {m.kind for m in reading.mentions}
    if has_time and not has_clock(span.text) and (not has_date or "time" in kinds):
        return
    if has_date and span.kind == "time" and ("date" in kinds or now is None):
        return
    moment = parse_moment(_with_year(reading, span), now)
    if moment is not None:
        yield Candidate(format_moment(moment, wanted), "moment", span, float(bool(parameter.time_format)))


def _with_year(reading: ParsedRequest, span: Span) -> str:
    """Return a date; without a year, it gets the year at the end of its range, as in `from 3 May to 5 May 2026`."""
    if _YEAR.search(span.text):
        return span.text
    ends = (other for other in reading.mentions if other.kind == "date" and 0 <= other.first - span.last <= 1)
    year = next((match[0] for end in ends if (match := _YEAR.search(end.text))), "")
    return f"{span.text} {year}".rstrip()


def _numbers(reading: ParsedRequest, parameter: Parameter, *, integer: bool) -> Iterator[Candidate]:
    known = {*parameter.words, *parameter.about}
    for span in reading.mentions:
        if span.kind == "date" and (year := _YEAR.search(span.text)):
            yield Candidate(int(year[0]), "moment", span)
        amount = amount_in(span.text) if span.kind in {"duration", "date"} else None
        value, unit = amount or (span.number, reading.unit_of(span))
        if _counts_otherwise(unit, known):
            continue
        number = None if value is None else as_number(value, integer=integer)
        if number is not None:
            yield Candidate(number, "number", span, float(bool(unit) and stems_in(unit)[0] in known))
        if value is not None and unit in _PERCENT and not integer:
            yield Candidate(round(value / 100, 10), "share", span)


def _counts_otherwise(unit: str, known: set[str]) -> bool:
    """Return whether a parameter names another unit of the same dimension: nothing converts hours to its minutes."""
    stem = next(iter(stems_in(unit)), "") if unit else ""
    return any(stem in units and units & known and stem not in known for units in _UNITS)


def _choices(reading: ParsedRequest, parameter: Parameter) -> Iterator[Candidate]:
    for choice in parameter.choices[:60]:
        stems = stems_in(str(choice))
        best: tuple[float, Span | None] = (0.0, None)
        for span in reading.spans:
            if span.last - span.first <= len(stems) + 1:
                agreement = _choice_agreement(span, stems, str(choice))
                if agreement > best[0]:
                    best = (agreement, span)
        if best[1] is not None:
            yield Candidate(choice, "choice", best[1], best[0])


def _choice_agreement(span: Span, stems: Sequence[str], choice: str) -> float:
    if span.text.casefold() == choice.casefold():
        return 1.0
    own = stems_in(span.text)
    if own == [*stems]:
        return 0.95
    if "".join(own) == "".join(stems) or (isinstance(span.number, int) and choice == str(span.number)):
        return 0.9
    if len(own) == 1 and len(own[0]) > 3 and own[0] in stems:
        return 0.4 + 0.3 / len(stems)
    if len(stems) == 1 and stems[0] in own and len(stems[0]) > 2:
        return 0.6
    return _prefix_agreement(own[0], stems[0]) if len(own) == len(stems) == 1 else 0.0


def _prefix_agreement(first: str, second: str) -> float:
    short, long = sorted((first, second), key=len)
    if len(short) >= 3 and long.startswith(short):
        return 0.7
    common = next((at for at, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), len(short))
    if common >= 4 and common >= 0.6 * len(long):
        return 0.5
    return 0.3 if len(short) == 1 and long.startswith(short) else 0.0


def _booleans(reading: ParsedRequest, parameter: Parameter) -> Iterator[Candidate]:
    name = [word for word in parameter.words if word not in {"is", "has", "should", "includ", "use", "enabl"}]
    yielded = 0
    for at, stems in enumerate(reading.stems):
        in_name = sum(word in stems for word in name) / max(1, len(name))
        in_text = 0.2 * any(stem in parameter.about for stem in stems)
        if (in_name or in_text) and yielded < 20:
            yielded += 1
            before = {*reading.words[max(0, at - 4) : at]} - {*words_of(parameter.name)}
            negated = bool(_NEGATIONS & before)
            span = reading.span(at, at + 1, "phrase")
            yield Candidate(not negated, "no" if negated else "yes", span, in_name or in_text, negated)


def _may_be_command(reading: ParsedRequest, span: Span) -> bool:
    before = reading.words[span.first - 1] if span.first else ""
    is_set_off = span.kind in {"quoted", "code"} or not before or reading.breaks[span.first]
    return is_set_off or before in _BEFORE_COMMANDS


def _arrays(reading: ParsedRequest, parameter: Parameter, now: datetime | None) -> Iterator[Candidate]:
    items = parameter.items
    if {*parameter.words} & COMMAND_STEMS and items.type in {"string", "any"}:
        commands = (span for span in reading.spans if _may_be_command(reading, span))
        yield from (Candidate(split_command(span.text), "command", span) for span in commands)
        return
    if items.type in {"array", "object"}:
        return
    singles = _single_items(reading, items, now)
    for ranges in _enumerations(reading):
        values = [singles.get(item) for item in ranges]
        if None not in values:
            yield Candidate(values, "list", reading.span(ranges[0][0], ranges[-1][1], "rest"))
    for (first, last), value in singles.items():
        if value is not None and last - first <= 5:
            yield Candidate([value], "written", reading.span(first, last, "phrase"))


def _single_items(reading: ParsedRequest, items: Parameter, now: datetime | None) -> dict[tuple[int, int], Any]:
    if items.type in {"string", "any"}:
        return {(one.span.first, one.span.last): one.value for one in _strings(reading, items, now) if one.span}
    singles: dict[tuple[int, int], Any] = {}
    for one in _candidates(reading, items, now):
        if one.span and one.way in {"number", "choice", "moment"}:
            singles.setdefault((one.span.first, one.span.last), one.value)
    return singles


def _enumerations(reading: ParsedRequest) -> Iterator[tuple[tuple[int, int], ...]]:
    """Yield the token ranges of enumerations such as `a, b and c`, with variants of the first and last item."""
    count, yielded, at = min(len(reading.tokens), 400), 0, 0
    while at < count and yielded < 40:
        items, start = [], at
        while at < count:
            before, is_and = reading.tokens[at].before, reading.words[at] in _AND
            if at > start and reading.breaks[at]:
                break
            if at > start and (is_and or "," in before or "、" in before):
                items.append((start, at))
                at += is_and
                start = at
                if at >= count:
                    break
            at += 1
        items.append((start, at))
        items = [item for item in items if item[1] > item[0]]
        if len(items) > 1:
            yielded += 1
            yield from _enumeration_variants(reading, items[:60])
        at = max(at, start + 1)


def _enumeration_variants(
    reading: ParsedRequest, items: list[tuple[int, int]]
) -> Iterator[tuple[tuple[int, int], ...]]:
    words = reading.words
    for start in range(len(items) - 1):
        for end in range(start + 2, len(items) + 1):
            if start and end < len(items):
                continue
            head, tail = items[start], items[end - 1]
            inner = tuple(_trimmed(reading, item) for item in items[start + 1 : end - 1])
            for first in range(max(head[0], head[1] - 5), head[1]):
                for last in range(tail[0] + 1, min(tail[1], tail[0] + 5) + 1):
                    if words[first] not in EDGES and words[last - 1] not in EDGES:
                        yield ((first, head[1]), *inner, _trimmed(reading, (tail[0], last)))


def _trimmed(reading: ParsedRequest, item: tuple[int, int]) -> tuple[int, int]:
    first, last = item
    while last - first > 1 and reading.words[first] in EDGES:
        first += 1
    return first, last
