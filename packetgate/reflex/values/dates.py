"""Find and parse dates, times, durations and time zones."""

import re
import unicodedata
from collections.abc import Iterator
from datetime import datetime
from functools import cache, lru_cache
from zoneinfo import available_timezones

from packetgate.tools.text.values import NUMBER_WORDS

_CONTINENTS = frozenset("Africa America Asia Atlantic Australia Europe Indian Pacific".split())
LANGUAGES = ["en", "de", "es", "fr", "zh"]

_MONTH = (
    r"(?:jan(?:uary|uar|vier)?|feb(?:ruary|ruar)?|mar(?:ch|zo|s)?|märz|apr(?:il)?|may|mai|mayo|june?|juni|jul[iy]?|aug(?:ust)?"
    r"|sept?(?:ember|iembre|embre)?|oct(?:ober|ubre|obre)?|okt(?:ober)?|nov(?:ember|iembre|embre)?|de[cz](?:ember|iembre)?"
    r"|enero|febrero|abril|junio|julio|agosto|février|avril|juin|juillet|août|décembre)\b\.?"
)
_WEEKDAY = (
    r"(?:mon|tues?|wednes|thurs?|fri|satur|sun)day|montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag|lunes|martes"
    r"|miércoles|jueves|viernes|sábado|domingo|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche"
)
_CLOCK = r"\d{1,2}(?::\d{2}){0,2}\s?[ap]\.?m\b\.?|\d{1,2}:\d{2}(?::\d{2})?(?!\d)|noon\b|midnight\b"
_UNIT = r"(?:second|minute|hour|day|week|month|year|decade|quarter)s?\b"
_COUNT = r"(?:\d{1,4}|an?|one|two|three|four|five|six|seven|eight|nine|ten|couple of|few)"
_DAY = (
    rf"\d{{1,2}}(?:st|nd|rd|th|\.)?(?: of| de)? {_MONTH}(?:,? (?:de )?\d{{4}}\b)?"
    rf"|{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?\b(?!:)(?:,? \d{{4}}\b)?|{_MONTH},? (?:of |de )?\d{{4}}\b"
    r"|\d{4}-\d{1,2}-\d{1,2}(?![\d-])|\d{1,2}/\d{1,2}/\d{2,4}(?![\d/])"
    r"|(?:the )?day (?:after tomorrow|before yesterday)\b|tomorrow\b|yesterday\b|today\b|tonight\b"
    rf"|(?:next|last|this|coming|past) (?:week|month|year|weekend|quarter|{_WEEKDAY})\b|(?:{_WEEKDAY})\b"
    r"|übermorgen\b|gestern\b|heute\b|hoy\b|mañana\b|ayer\b|aujourd'hui\b|demain\b|hier(?= |$)"
)
_WHEN = re.compile(
    rf"(?<![\w/.-])(?:(?P<relative>in {_COUNT} {_UNIT}|{_COUNT} {_UNIT} (?:ago|from now))"
    rf"|(?P<date>{_DAY})|(?P<time>{_CLOCK})"
    rf"|(?P<duration>(?:half an? |{_COUNT}(?:\.\d+)?[ -]){_UNIT}(?:(?:,? and |, | )\d{{1,3}} {_UNIT})?))"
    r"|(?P<chinese>\d{4}年(?:\d{1,2}月(?:\d{1,2}日)?)?|\d{1,2}月\d{1,2}日|今天|明天|后天|昨天|前天)",
    re.IGNORECASE,
)
_TIME_OF_DAY = re.compile(rf"(?<![\w/.-])(?:{_CLOCK})|T\d{{2}}:\d{{2}}", re.IGNORECASE)
_AMBIGUOUS = re.compile(r"may|mar|mars|sun|hier", re.IGNORECASE)  # usually not dates when they are alone


def find_time_spans(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield (start, end, kind) of each `date`, `time` and `duration` in a text."""
    for match in _WHEN.finditer(text):
        kind = match.lastgroup or ""
        kind = "date" if kind in {"relative", "chinese"} else kind
        if not _AMBIGUOUS.fullmatch(match.group()):
            yield match.start(), match.end(), kind


def has_clock(text: str) -> bool:
    """Return whether a text contains a time of day."""
    return bool(_TIME_OF_DAY.search(text))


@lru_cache(maxsize=2_000)
def parse_moment(text: str, now: datetime | None) -> datetime | None:
    """Return the moment of a date or time in words. Without `now`, relative dates such as `tomorrow` give None."""
    if len(text) > 60:
        return None
    iso = re.fullmatch(r"(\d{4})-(\d{1,2})-(\d{1,2})", text)
    if iso:
        try:
            return datetime(*(int(part) for part in iso.groups()))  # type: ignore[arg-type]
        except ValueError:
            return None
    if now is None and not re.search(r"\d{4}", text) and not re.fullmatch(_CLOCK, text.strip(), re.IGNORECASE):
        return None
    import dateparser

    base = (now or datetime(2000, 1, 1)).replace(tzinfo=None)
    cleaned = re.sub(r"\bday after tomorrow\b", "in 2 days", re.sub(r"^the ", "", text, flags=re.IGNORECASE))
    cleaned = {"noon": "12:00", "midnight": "00:00", "tonight": "today"}.get(cleaned.lower(), cleaned)
    found = dateparser.parse(
        cleaned,
        languages=LANGUAGES,
        settings={"RELATIVE_BASE": base, "PREFER_DATES_FROM": "future", "DATE_ORDER": _order(cleaned)},
    )
    return found if isinstance(found, datetime) else None


def _order(text: str) -> str:
    first = re.match(r"(\d{1,2})[/.]", text)
    return "DMY" if (first and int(first[1]) > 12) or re.fullmatch(r"\d{1,2}\.\d{1,2}\.\d{4}", text) else "MDY"


_AMOUNT = re.compile(rf"(half an?|{_COUNT}(?:\.\d+)?)[ -]({_UNIT})", re.IGNORECASE)


def amount_in(text: str) -> tuple[float, str] | None:
    """Return the count and the unit of a duration such as `2 hours`; None without a duration, or with several."""
    amounts = _AMOUNT.findall(text)
    if len(amounts) != 1:
        return None
    count, unit = (part.lower() for part in amounts[0])
    if count.startswith("half"):
        return 0.5, unit
    return {"a": 1, "an": 1, "couple of": 2, "few": 3}.get(count) or NUMBER_WORDS.get(count) or float(count), unit


def format_moment(moment: datetime, pattern: str) -> str:
    """Format a moment by a pattern such as `YYYY-MM-DD` or `HH:MM`."""
    names = {
        "YYYY": "%Y", "MM": "%m", "DD": "%d", "YY": "%y", "HH": "%H", "mm": "%M", "SS": "%S", "ss": "%S", "hh": "%H",
    }  # fmt: skip
    pattern = re.sub(r"(HH|hh):(?:MM|mm)", r"\1:mm", pattern)
    return re.sub(r"YYYY|YY|MM|DD|HH|hh|mm|SS|ss", lambda part: moment.strftime(names[part.group()]), pattern)


_PATTERN = re.compile(
    r"(?<![A-Za-z])(?:YYYY[-/.]MM[-/.]DD(?:[ T]HH:MM(?::SS)?)?|MM[-/.]DD[-/.]YYYY|DD[-/.]MM[-/.]YYYY|HH:MM(?::SS)?"
    r"|YYYY[-/.]MM)(?![A-Za-z])",
    re.IGNORECASE,
)
_EXAMPLE = re.compile(r"(?<![\d/.-])(?:(\d{4})([-/.])\d{2}\2\d{2}|\d{2}(/)\d{2}/\d{4}|\d{2}:\d{2})(?![\d/.-])")


def expected_date_format(schema_format: str, text: str) -> str:
    """Return the date format that a parameter expects, by its `format`, description or example; may be empty."""
    by_name = {"date": "YYYY-MM-DD", "date-time": "YYYY-MM-DDTHH:MM:SS", "time": "HH:MM:SS"}
    if schema_format in by_name:
        return by_name[schema_format]
    if found := _PATTERN.search(text):
        return found.group().upper()
    if example := _EXAMPLE.search(text):
        if example[1]:
            return f"YYYY{example[2]}MM{example[2]}DD"
        return "MM/DD/YYYY" if example[3] else "HH:MM"
    return ""


def find_time_zone(text: str) -> str | None:
    """Return the IANA name of a time zone, given its name or city (`Asia/Tokyo`, `tokyo`); otherwise None."""
    return _zones().get(_plain(text))


@cache
def _zones() -> dict[str, str]:
    zones = sorted(available_timezones() - {"localtime", "Factory"})
    cities = {
        _plain(zone.rpartition("/")[2]): zone for zone in reversed(zones) if zone.partition("/")[0] in _CONTINENTS
    }
    return {**cities, **{_plain(zone): zone for zone in zones}}


def _plain(text: str) -> str:
    letters = unicodedata.normalize("NFKD", text.casefold().replace("_", " "))
    return "".join(letter for letter in letters if not unicodedata.combining(letter))
