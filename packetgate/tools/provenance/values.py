"""Normalize texts, numbers, dates and addresses, so that they can be compared."""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

from packetgate.tools.text.words import STOP_WORDS

DATE_CHARS = 40
_MAX_DEPTH = 32
_NOT_ALPHANUMERIC = re.compile(r"[^a-z0-9]+")
_PHRASE_WORDS = 3
_PHRASE_CHARS = 14
_MAX_WORDS = 4_000
_WORD = re.compile(r"\w+")
_SPACES = re.compile(r"\s+")
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d{1,30}(?:[.,'\u2019\u00a0 ]\d{1,30}){0,8}(?!\w)")
_GROUPS = re.compile(r"\d{1,3}(?:([,.'\u2019\u00a0 ])\d{3})(?:\1\d{3})*(?:[.,]\d+)?")
EMAIL = re.compile(r"[\w.+%-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")
URL = re.compile(r"\b(?:[a-z][a-z0-9+.-]{1,15}://|www\.)[^\s<>\"'`()\[\]{}|\\^]{2,}", re.IGNORECASE)
HOST = re.compile(
    r"(?<![\w@.-])(?:[a-z0-9][a-z0-9-]{0,62}\.){1,8}[a-z]{2,24}(?::\d{1,5})?(?:/[^\s<>\"'`]*)?(?![\w@])",
    re.IGNORECASE,
)
IBAN = re.compile(r"(?<!\w)[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?!\w)")
PHONE = re.compile(r"(?<!\w)\+\d(?:[ ().-]{0,2}\d){6,14}(?!\w)")
_FILE_ENDINGS = frozenset(
    "txt md pdf doc docx xls xlsx csv tsv json yaml yml toml ini cfg conf log py js ts html htm css xml sh bat zip tar"
    " gz tgz png jpg jpeg gif svg webp mp3 mp4 mov ppt pptx rtf odt ods ipynb rs go java c h cpp rb php sql db bak env"
    " lock key pem".split()
)
_MONTHS = {
    name: number
    for number, names in enumerate(
        "january jan,february feb,march mar,april apr,may,june jun,july jul,august aug,september sep sept,october oct,"
        "november nov,december dec".split(","),
        start=1,
    )
    for name in names.split()
}
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_ISO_DATE = re.compile(r"(?<!\d)(\d{4})-(\d{2})-(\d{2})(?!\d)")
_DAY_FIRST = re.compile(
    rf"(?<!\w)(\d{{1,2}})(?:st|nd|rd|th)?(?:\s*(?:-|to|until|till|and|through)\s*(?:the\s+)?(\d{{1,2}})(?:st|nd|rd|th)?)?"
    rf"\s*(?:of\s+)?({_MONTH})\b(?:,?\s*(\d{{4}}))?"
)
_MONTH_FIRST = re.compile(rf"\b({_MONTH})\.?\s+(\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s*(\d{{4}}))?")
_SLASHED = re.compile(r"(?<!\d)(\d{1,2})[./](\d{1,2})[./](\d{4})(?!\d)")
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


def plain_text(text: str) -> str:
    """Return a text on one line, normalised, without invisible characters."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
        text = "".join(char for char in text if unicodedata.category(char) != "Cf")
    return _SPACES.sub(" ", text).strip()


def fold_text(text: str) -> str:
    """Return a text as it is compared: plain (see `plain_text`) and in lower case."""
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
    """Yield the phrases of a text: three words in a row of which at least two are not stop words."""
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
    """Return the numbers, dates, IBANs and phone numbers of a folded text, each with its first start and end."""
    upper = text.upper() if len(text.upper()) == len(text) else text
    places: list[tuple[NormalizedValue, tuple[int, int]]] = [
        (("number", value), (start, end)) for value, start, end in numbers_in(text)
    ]
    for pattern in (IBAN, PHONE):
        places += [(("account", alphanumerics_of(match[0])), match.span()) for match in pattern.finditer(upper)]
    for (year, *day), span in _days_in(text):
        places += [(("day", year, *day), span), (("day", None, *day), span)]
    return dict(reversed(places))


def normalized_values_of(value: str) -> list[tuple[NormalizedValue, ...]]:
    """Return the normalized values of a folded text: a tuple of alternatives for its number, account or each date.

    A source contains the number, account or date if it contains one of the alternatives.
    """
    number = parse_number(value)
    values: list[NormalizedValue] = [("account", alphanumerics_of(value))] if is_account(value) else []
    values += [] if number is None else [("number", number)]
    if values:
        return [tuple(values)]
    days = [day for day, _ in _days_in(value)] if len(value) < DATE_CHARS else []
    return [(("day", year, *day), ("day", 0, *day)) if year else (("day", None, *day),) for year, *day in days]


def _days_in(text: str) -> Iterator[tuple[tuple[int, int, int], tuple[int, int]]]:
    """Yield the dates (year, month, day) in a folded text with their spans; the year is 0 if it is missing.

    An ambiguous date, such as 01/02/2026, yields both readings.
    """
    for match in _ISO_DATE.finditer(text):
        yield (int(match[1]), int(match[2]), int(match[3])), match.span()
    for match in _DAY_FIRST.finditer(text):
        for day in filter(None, (match[1], match[2])):
            yield (int(match[4] or 0), _MONTHS[match[3]], int(day)), match.span()
    for match in _MONTH_FIRST.finditer(text):
        yield (int(match[3] or 0), _MONTHS[match[1]], int(match[2])), match.span()
    for match in _SLASHED.finditer(text):
        first, second, year = int(match[1]), int(match[2]), int(match[3])
        yield (year, second, first), match.span()
        yield (year, first, second), match.span()


def addresses_in(text: str) -> list[str]:
    """Return the e-mail addresses, URLs, hosts, IBANs and phone numbers in a text, each once."""
    addresses: list[str] = []
    for pattern in (EMAIL, URL, IBAN, PHONE):
        addresses += [match[0].rstrip(".,;:!?") for match in pattern.finditer(text)]
        text = pattern.sub(" ", text)
    addresses += [match[0].rstrip(".,;:!?/") for match in HOST.finditer(text) if _is_host(match[0])]
    return list(dict.fromkeys(addresses))


def is_address(text: str) -> bool:
    """Return whether a text is one address of a kind that `addresses_in` finds."""
    text = text.strip()
    if any(pattern.fullmatch(text) for pattern in (EMAIL, URL, IBAN, PHONE)):
        return True
    return HOST.fullmatch(text) is not None and _is_host(text)


def is_mail(text: str) -> bool:
    """Return whether a text is one e-mail address."""
    return EMAIL.fullmatch(text.strip()) is not None


def is_account(text: str) -> bool:
    """Return whether a text is one IBAN or phone number."""
    return bool(IBAN.fullmatch(text.strip().upper()) or PHONE.fullmatch(text.strip()))


def host_of(address: str) -> str:
    """Return the host of a URL or an e-mail address in lower case, or an empty string."""
    if EMAIL.fullmatch(address):
        return address.rpartition("@")[2].lower()
    parts = _url_parts(address)
    return (parts.hostname or "").lower() if parts else ""


def _url_parts(address: str) -> SplitResult | None:
    try:
        return urlsplit(address if "://" in address else f"//{address}")
    except ValueError:
        return None


def _is_host(text: str) -> bool:
    return text.partition("/")[0].rpartition(".")[2].partition(":")[0].lower() not in _FILE_ENDINGS
