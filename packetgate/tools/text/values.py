"""Normalize texts, numbers, dates and addresses, so that they can be compared."""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from packetgate.tools.text.words import STOP_WORDS

_DATE_CHARS = 40
_MAX_DEPTH = 32
_NOT_ALPHANUMERIC = re.compile(r"[^a-z0-9]+")
_PHRASE_WORDS = 3
_PHRASE_CHARS = 14
_MAX_WORDS = 4_000
_WORD = re.compile(r"\w+")
_SPACES = re.compile(r"\s+")
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d{1,30}(?:[.,'\u2019\u00a0 ]\d{1,30}){0,8}(?!\w)")
_GROUPS = re.compile(r"\d{1,3}(?:([,.'\u2019\u00a0 ])\d{3})(?:\1\d{3})*(?:[.,]\d+)?")
_EMAIL = re.compile(r"[\w.+%-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")
_URL = re.compile(r"\b(?:[a-z][a-z0-9+.-]{1,15}://|www\.)[^\s<>\"'`()\[\]{}|\\^]{2,}", re.IGNORECASE)
_HOST = re.compile(
    r"(?<![\w@.-])(?:[a-z0-9][a-z0-9-]{0,62}\.){1,8}[a-z]{2,24}(?::\d{1,5})?(?:/[^\s<>\"'`]*)?(?![\w@])",
    re.IGNORECASE,
)
_IBAN = re.compile(r"(?<!\w)[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?!\w)")
_PHONE = re.compile(r"(?<!\w)\+\d(?:[ ().-]{0,2}\d){6,14}(?!\w)")
_ADDRESSES = (_EMAIL, _URL, _IBAN, _PHONE)
_FILE_ENDINGS = frozenset(
    "txt md pdf doc docx xls xlsx csv tsv json yaml yml toml ini cfg conf log py js ts html htm css xml sh bat zip tar"
    " gz tgz png jpg jpeg gif svg webp mp3 mp4 mov ppt pptx rtf odt ods ipynb rs go java c h cpp rb php sql db bak env"
    " lock key pem".split()
)
_MONTHS = "january february march april may june july august september october november december".split()
_MONTH = "|".join(f"{name[:3]}(?:{name[3:]})?" for name in _MONTHS)
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"\b(?:,?\s*(?P<year>\d{4}))?"
_DATES = (
    re.compile(r"(?<!\d)(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})(?!\d)"),
    re.compile(rf"(?<!\w){_DAY}\s*(?:of\s+)?(?P<month>{_MONTH}){_YEAR}"),
    re.compile(rf"\b(?P<month>{_MONTH})\.?\s+{_DAY}{_YEAR}"),
    re.compile(r"(?<!\d)(?P<day>\d{1,2})[./](?P<month>\d{1,2})[./](?P<year>\d{4})(?!\d)"),
    re.compile(r"(?<!\d)(?P<month>\d{1,2})[./](?P<day>\d{1,2})[./](?P<year>\d{4})(?!\d)"),
)
"""A date such as 01/02/2026 fits two patterns and counts as both days."""
NUMBER_WORDS = dict(
    zip("one two three four five six seven eight nine ten eleven twelve".split(), range(1, 13), strict=True)
)


NormalizedValue = tuple[Any, ...]
"""A number, date, IBAN or phone number, independent of its notation: a tuple of its kind and its value."""


class Leaf(NamedTuple):
    """A text, number or boolean inside a value, with the keys that lead to it."""

    keys: tuple[str, ...]
    value: Any


def leaves(value: Any, *keys: str) -> Iterator[Leaf]:
    """Yield the leaves of a value. A part deeper than `_MAX_DEPTH` is one text."""
    if len(keys) > _MAX_DEPTH:
        yield Leaf(keys, json.dumps(value, ensure_ascii=False, default=str))
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from leaves(inner, *keys, str(key))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from leaves(inner, *keys)
    elif value is not None:
        yield Leaf(keys, value)


def keys_in(value: Any, depth: int = 0) -> Iterator[str]:
    """Yield the keys of all objects in a value."""
    if depth <= _MAX_DEPTH and isinstance(value, Mapping | list):
        for part in value:
            if isinstance(value, Mapping):
                yield str(part)
            yield from keys_in(value[part] if isinstance(value, Mapping) else part, depth + 1)


def plain_text(text: str) -> str:
    """Return a text on one line, normalised, without invisible characters."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
        text = "".join(char for char in text if unicodedata.category(char) != "Cf")
    return _SPACES.sub(" ", text).strip()


def fold_text(text: str) -> str:
    """Return a text in its form for comparison: plain (see `plain_text`) and in lower case."""
    return plain_text(text).lower()


def find_words(text: str, words: str, start: int = 0) -> int:
    """Return the index at which `text` contains `words` as separate words, or -1. Both are folded."""
    at = text.find(words, start) if words else -1
    while at >= 0:
        end = at + len(words)
        starts_word = at == 0 or not (text[at - 1].isalnum() and words[0].isalnum())
        ends_word = end == len(text) or not (text[end].isalnum() and words[-1].isalnum())
        if starts_word and ends_word:
            return at
        at = text.find(words, at + 1)
    return -1


def phrases_in(words: str) -> Iterator[str]:
    """Yield the phrases of a text: three consecutive words, of which at least two are not stop words."""
    spans = [match.span() for match in _WORD.finditer(words)][:_MAX_WORDS]
    for first, last in zip(spans, spans[_PHRASE_WORDS - 1 :], strict=False):
        phrase = words[first[0] : last[1]]
        if len(phrase) >= _PHRASE_CHARS and sum(word not in STOP_WORDS for word in _WORD.findall(phrase)) > 1:
            yield phrase


def alphanumerics_of(text: str) -> str:
    """Return only the ASCII letters and digits of a text, in lower case."""
    return _NOT_ALPHANUMERIC.sub("", text.lower())


def parse_number(value: Any) -> Decimal | None:
    """Return the number of a value: 1200 for `1,200.00`; None if the value is not a number."""
    if isinstance(value, bool):
        return None
    text = str(value).strip() if isinstance(value, int | float | str) else ""
    if not text or len(text) > 60:
        return None
    try:
        parsed = Decimal(_ungrouped(text.strip("$€£¥ ").removesuffix("%")))
    except InvalidOperation:
        return None
    return parsed.normalize() if parsed.is_finite() else None


def _ungrouped(text: str) -> str:
    grouped = _GROUPS.fullmatch(text.lstrip("+-"))
    if grouped is None:
        return text.replace(",", ".") if text.count(",") == 1 and "." not in text else text
    return text.replace(grouped[1], "").replace(",", ".")


def numbers_in(text: str) -> Iterator[tuple[Decimal, int, int]]:
    """Yield each number in a text with its start and end."""
    for match in _NUMBER.finditer(text):
        value = parse_number(match[0])
        if value is not None:
            yield value, match.start(), match.end()
        else:  # several numbers, separated by spaces or commas
            for part in re.finditer(r"\d+(?:\.\d+)?", match[0]):
                yield Decimal(part[0]).normalize(), match.start() + part.start(), match.start() + part.end()


def normalized_values_in(text: str) -> dict[NormalizedValue, tuple[int, int]]:
    """Return the numbers, dates, IBANs and phone numbers of a folded text, each with its first start and end.

    A date is returned with and without its year: `normalized_values_of` says which of the two a value must fit.
    """
    upper = text.upper() if len(text.upper()) == len(text) else text
    places: list[tuple[NormalizedValue, tuple[int, int]]] = [
        (("number", value), (start, end)) for value, start, end in numbers_in(text)
    ]
    for pattern in (_IBAN, _PHONE):
        places += [(("account", alphanumerics_of(match[0])), match.span()) for match in pattern.finditer(upper)]
    for (year, *day), span in _days_in(text):
        places += [(("day", year, *day), span), (("day", None, *day), span)]
    return dict(reversed(places))


def normalized_values_of(value: str) -> list[tuple[NormalizedValue, ...]]:
    """Return the normalized values of a folded text: a tuple of alternatives for its number, account or each date.

    A source contains the number, account or date if it contains one of the alternatives.
    """
    if is_account(value):
        return [(("account", alphanumerics_of(value)),)]
    number = parse_number(value)
    if number is not None:
        return [(("number", number),)]
    days = [day for day, _ in _days_in(value)] if len(value) < _DATE_CHARS else []
    return [(("day", year, *day), ("day", 0, *day)) if year else (("day", None, *day),) for year, *day in days]


def _days_in(text: str) -> Iterator[tuple[tuple[int, int, int], tuple[int, int]]]:
    """Yield the dates (year, month, day) in a folded text with their spans; the year is 0 if it is missing."""
    for match in (match for pattern in _DATES for match in pattern.finditer(text)):
        month = next((at for at, name in enumerate(_MONTHS, 1) if name[:3] == match["month"][:3]), 0)
        yield (int(match["year"] or 0), month or int(match["month"]), int(match["day"])), match.span()


def addresses_in(text: str) -> list[str]:
    """Return the e-mail addresses, URLs, hosts, IBANs and phone numbers in a text, without duplicates."""
    addresses: list[str] = []
    for pattern in _ADDRESSES:
        addresses += [match[0].rstrip(".,;:!?") for match in pattern.finditer(text)]
        text = pattern.sub(" ", text)
    addresses += [match[0].rstrip(".,;:!?/") for match in _HOST.finditer(text) if _is_host(match[0])]
    return list(dict.fromkeys(addresses))


def is_address(text: str) -> bool:
    """Return whether a text is one address of a kind that `addresses_in` finds."""
    text = text.strip()
    return any(pattern.fullmatch(text) for pattern in _ADDRESSES) or bool(_HOST.fullmatch(text) and _is_host(text))


def is_mail(text: str) -> bool:
    """Return whether a text is one e-mail address."""
    return _EMAIL.fullmatch(text.strip()) is not None


def is_account(text: str) -> bool:
    """Return whether a text is one IBAN or phone number."""
    return bool(_IBAN.fullmatch(text.strip().upper()) or _PHONE.fullmatch(text.strip()))


def _is_host(text: str) -> bool:
    return text.partition("/")[0].rpartition(".")[2].partition(":")[0].lower() not in _FILE_ENDINGS
