"""Values in the forms in which they are compared: text without case and tricks, numbers, dates, addresses."""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

MAX_DEPTH = 32
_SIGNS = re.compile(r"[^a-z0-9]+")

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


class Leaf(NamedTuple):
    """A value without parts, and the names that lead to it."""

    keys: tuple[str, ...]
    value: Any


class Day(NamedTuple):
    """A date; the year is 0 where none was said."""

    year: int
    month: int
    day: int


def leaves(value: Any, *keys: str) -> Iterator[Leaf]:
    """Yield the texts, numbers and flags in a value; what is nested deeper than `MAX_DEPTH` as one text."""
    if len(keys) > MAX_DEPTH:
        yield Leaf(keys, json.dumps(value, ensure_ascii=False, default=str))
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from leaves(inner, *keys, str(key))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from leaves(inner, *keys)
    elif value is not None:
        yield Leaf(keys, value)


def plain(text: str) -> str:
    """Return a text on one line, in its usual characters, without those that cannot be seen."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
        text = "".join(char for char in text if unicodedata.category(char) != "Cf")
    return _SPACES.sub(" ", text).strip()


def folded(text: str) -> str:
    """Return a text as it is compared: as `plain`, and in lower case."""
    return plain(text).lower()


def find(text: str, words: str, start: int = 0) -> int:
    """Return where `words` stand in `text` as words of their own, both folded; -1 where they do not."""
    at = text.find(words, start) if words else -1
    while at >= 0:
        end = at + len(words)
        before = at == 0 or not (text[at - 1].isalnum() and words[0].isalnum())
        after = end == len(text) or not (text[end].isalnum() and words[-1].isalnum())
        if before and after:
            return at
        at = text.find(words, at + 1)
    return -1


def number(value: Any) -> Decimal | None:
    """Return the number that a value is or says: 1200 for `1,200.00`; None where it is none."""
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
    mark = grouped[1]
    whole = text.replace(mark, "")
    return whole.replace(",", ".")


SPELT = dict(zip("one two three four five six seven eight nine ten eleven twelve".split(), range(1, 13), strict=True))
"""Numbers as words."""


def numbers_in(text: str) -> Iterator[tuple[Decimal, int, int]]:
    """Yield the numbers that a text says, and where."""
    for found in _NUMBER.finditer(text):
        value = number(found[0])
        if value is not None:
            yield value, found.start(), found.end()
        else:  # several, with blanks or commas between them
            for part in re.finditer(r"\d+(?:\.\d+)?", found[0]):
                yield Decimal(part[0]).normalize(), found.start() + part.start(), found.start() + part.end()


def days_in(text: str) -> Iterator[tuple[Day, int, int]]:
    """Yield the dates that a folded text says, and where; those that can be read in two ways in both."""
    for found in _ISO_DATE.finditer(text):
        yield Day(int(found[1]), int(found[2]), int(found[3])), found.start(), found.end()
    for found in _DAY_FIRST.finditer(text):
        for day in filter(None, (found[1], found[2])):
            yield Day(int(found[4] or 0), _MONTHS[found[3]], int(day)), found.start(), found.end()
    for found in _MONTH_FIRST.finditer(text):
        yield Day(int(found[3] or 0), _MONTHS[found[1]], int(found[2])), found.start(), found.end()
    for found in _SLASHED.finditer(text):
        first, second, year = int(found[1]), int(found[2]), int(found[3])
        yield Day(year, second, first), found.start(), found.end()
        yield Day(year, first, second), found.start(), found.end()


def same_day(one: Day, other: Day) -> bool:
    """Whether two dates may be the same."""
    return one[1:] == other[1:] and (one.year == other.year or not (one.year and other.year))


def addresses_in(text: str) -> list[str]:
    """Return the e-mail addresses, URLs, hosts, IBANs and phone numbers that stand in a text, each once."""
    found: list[str] = []
    for pattern in (EMAIL, URL, IBAN, PHONE):
        found += [one[0].rstrip(".,;:!?") for one in pattern.finditer(text)]
        text = pattern.sub(" ", text)
    found += [one[0].rstrip(".,;:!?/") for one in HOST.finditer(text) if is_host(one[0])]
    return list(dict.fromkeys(found))


def is_address(text: str) -> bool:
    """Whether a text is nothing but one address that reaches outside."""
    text = text.strip()
    if EMAIL.fullmatch(text) or URL.fullmatch(text) or IBAN.fullmatch(text) or PHONE.fullmatch(text):
        return True
    return HOST.fullmatch(text) is not None and is_host(text)


def is_mail(text: str) -> bool:
    """Whether a text is nothing but a mail address."""
    return EMAIL.fullmatch(text.strip()) is not None


def is_host(text: str) -> bool:
    """Whether what looks like a host is none of the usual names of files."""
    return text.partition("/")[0].rpartition(".")[2].partition(":")[0].lower() not in _FILE_ENDINGS


def squeezed(text: str) -> str:
    """Return a text without all that is no letter and no digit, such as an account that is written in groups."""
    return _SIGNS.sub("", text.lower())


def is_account(text: str) -> bool:
    """Whether a text is nothing but an IBAN or a phone number."""
    return bool(IBAN.fullmatch(text.strip().upper()) or PHONE.fullmatch(text.strip()))


def accounts_in(text: str) -> dict[str, tuple[int, int]]:
    """Return where the IBANs and phone numbers of a folded text stand first, by their letters and digits."""
    shown = text.upper() if len(text.upper()) == len(text) else text
    found = [one for pattern in (IBAN, PHONE) for one in pattern.finditer(shown)]
    return {squeezed(one[0]): (one.start(), one.end()) for one in reversed(found)}


def host_of(address: str) -> str:
    """Return the host of a URL or an e-mail address, lower-case; empty where there is none."""
    if EMAIL.fullmatch(address):
        return address.rpartition("@")[2].lower()
    try:
        parts = urlsplit(address if "://" in address else f"//{address}")
        return (parts.hostname or "").lower()
    except ValueError:
        return ""


def beside_host(text: str) -> str:
    """Return what a text carries: of a URL all but its host, decoded; of anything else the whole."""
    address = plain(text)
    if is_mail(address) or not is_address(address):
        return text
    try:
        parts = urlsplit(address if "://" in address else f"//{address}")
    except ValueError:
        return unquote(address)
    return unquote(" ".join(filter(None, (parts.path, parts.query, parts.fragment))))
