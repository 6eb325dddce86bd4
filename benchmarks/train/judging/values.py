"""Generate random values by a parameter's name and type, in the notations that people use."""

import random
import re
import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from packetgate.tools.text.words import words_of

FIRST = (
    "Ada Amir Anna Bela Carlos Chen Daria Diego Elena Emeka Fatima Felix Grace Hana Igor Ines Jack Jonas Julia Kofi"
    " Lara Leo Lucia Maria Marko Mei Mia Nadia Nils Noor Olga Omar Paula Priya Ravi Rosa Sam Sofia Tariq Tom Uma Vera"
    " Wei Yara Yusuf Zoe".split()
)
LAST = (
    "Adams Bauer Costa Dubois Evans Ferrari Garcia Haddad Ito Jensen Khan Lopez Meyer Nguyen Okafor Patel Quinn Rossi"
    " Silva Tanaka Underwood Vargas Weber Young Zhang".split()
)
CITIES = [
    *"Athens Austin Bali Berlin Boston Cairo Chicago Delhi Dublin Geneva Lagos Lima Lisbon London Madrid Miami".split(),
    *"Mumbai Nairobi Oslo Paris Prague Rome Seattle Seoul Sydney Tokyo Toronto Vienna Warsaw Zurich".split(),
    *("New York", "Los Angeles", "San Francisco", "Cape Town", "Buenos Aires", "Hong Kong", "Rio de Janeiro"),
    *("Paris, France", "Austin, TX", "Portland, Oregon", "Kyoto, Japan", "San Diego, CA", "Leeds, UK"),
]
COUNTRIES = [
    *"Brazil Canada Chile China Egypt France Germany India Italy Japan Kenya Mexico Norway Peru Spain".split(),
    *("South Africa", "New Zealand", "United States", "United Kingdom"),
]
MONTHS = "January February March April May June July August September October November December".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
COLOURS = "red blue green black white yellow purple orange #ff8800 #1a2b3c teal".split()
LANGUAGES = "English German French Spanish Chinese Japanese Arabic Hindi Portuguese Italian en de fr es".split()
CURRENCIES = "USD EUR GBP JPY CHF INR BTC ETH dollars euros yen pounds".split()
SYMBOLS = "AAPL MSFT TSLA GOOG AMZN NVDA IBM BTC ETH BTCUSDT SPY".split()
FORMATS = "json csv xml pdf png jpg markdown html mp3 yaml txt svg".split()
ENDINGS = "txt md py json csv pdf png log yaml docx xlsx js html sql zip".split()
SITES = "example.com example.org shop.test docs.example.net news.test api.example.io".split()
NUMBER_WORDS = "one two three four five six seven eight nine ten eleven twelve".split()

_EXAMPLE = re.compile(r"(?:e\.g\.|such as|example)[:,]?\s*['\"`]([^'\"`]{2,40})['\"`]")
"""Matches an example value in a description."""

Phrases = Callable[[], str]
"""A function that returns random words."""


def value_of(name: str, schema: Mapping[str, Any], rng: random.Random, phrases: Phrases) -> str | None:
    """Return a value for a parameter in a user's notation; None for an object or a switch."""
    values = schema.get("enum")
    if isinstance(values, list) and values:
        said = str(rng.choice(values))
        return said.replace("_", " ").lower() if rng.random() < 0.5 else said
    kind = schema.get("type", "string")
    kind = str(next((one for one in kind if one != "null"), "string") if isinstance(kind, list) else kind)
    if kind in {"integer", "number", "float"}:
        return _number(name, kind, rng)
    if kind == "array":
        items = schema.get("items")
        item = items if isinstance(items, dict) else {}
        found = [value_of(name, item, rng, phrases) for _ in range(rng.choice([1, 2, 2, 3, 3, 4]))]
        return _listed([one for one in found if one], rng) if all(found) else None
    if kind != "string":
        return None
    about = str(schema.get("description", ""))
    shown = _EXAMPLE.search(about)
    return shown[1] if shown and rng.random() < 0.35 else _text(name, about, rng, phrases)


def _listed(parts: Sequence[str], rng: random.Random) -> str:
    if len(parts) == 1:
        return parts[0]
    if rng.random() < 0.15:
        return f"[{', '.join(parts)}]"
    last = rng.choice([" and ", " and ", ", and ", ", ", " or "])
    return ", ".join(parts[:-1]) + last + parts[-1]


def _number(name: str, kind: str, rng: random.Random) -> str:
    words = set(words_of(name))
    if words & {"year"}:
        return str(rng.randint(1900, 2030))
    if words & {"lat", "latitude", "lng", "lon", "longitude"}:
        return f"{rng.uniform(-90, 90):.{rng.randint(1, 4)}f}"
    if words & {"port"}:
        return str(rng.randint(80, 65000))
    size = rng.choice([10, 20, 100, 1000, 10_000, 1_000_000])
    number = rng.randint(1, size)
    if number <= 12 and rng.random() < 0.3:
        return NUMBER_WORDS[number - 1]
    if words & {"price", "amount", "budget", "cost", "salary", "income", "value"} and rng.random() < 0.5:
        return rng.choice(["${:,}", "{:,} dollars", "€{:,}", "{:,}"]).format(number)
    if words & {"rate", "percent", "percentage", "ratio"} and rng.random() < 0.5:
        return f"{rng.randint(1, 100)}%"
    if kind != "integer" and rng.random() < 0.5:
        return f"{rng.uniform(0, size):.{rng.randint(1, 3)}f}"
    if rng.random() < 0.05:
        return f"-{number}"
    return f"{number:,}" if rng.random() < 0.4 else str(number)


def date(rng: random.Random) -> str:
    """Return a date in a written or spoken form."""
    year, month, day = rng.randint(1990, 2030), rng.randint(1, 12), rng.randint(1, 28)
    return rng.choice(
        [
            f"{year}-{month:02}-{day:02}",
            f"{day}.{month}.{year}",
            f"{month:02}/{day:02}/{year}",
            f"{MONTHS[month - 1]} {day}, {year}",
            f"{day} {MONTHS[month - 1]} {year}",
            f"{MONTHS[month - 1]} {day}th",
            f"the {day}th of {MONTHS[month - 1]}",
            f"{MONTHS[month - 1]} {year}",
            f"next {rng.choice(DAYS)}",
            rng.choice(DAYS),
            rng.choice(["today", "tomorrow", "yesterday", "last week", "next month", "this weekend", "tonight"]),
        ]
    )


def clock(rng: random.Random) -> str:
    """Return a time of day in a written or spoken form."""
    hour, minute = rng.randint(0, 23), rng.choice([0, 0, 15, 30, 45])
    return rng.choice([f"{hour:02}:{minute:02}", f"{hour % 12 + 1} pm", f"{hour % 12 + 1}:{minute:02} am", "noon"])


def identifier(rng: random.Random) -> str:
    """Return an identifier like those that machines generate."""
    letters = string.ascii_letters + string.digits
    return rng.choice(
        [
            "".join(rng.choices(letters, k=rng.randint(5, 14))),
            "".join(rng.choices("0123456789abcdef", k=rng.choice([8, 16, 32]))),
            f"{rng.choice('ABCDEFGHKLMNPRSTUVX')}{rng.choice(['', '-', 'X-'])}{rng.randint(10, 99999)}",
            str(rng.randint(1, 999_999)),
            f"{rng.choice(['user', 'item', 'task', 'doc', 'order', 'proj'])}_{rng.randint(1, 9999)}",
            "0x" + "".join(rng.choices("0123456789abcdef", k=rng.choice([8, 40]))),
        ]
    )


def _path(rng: random.Random, phrases: Phrases) -> str:
    stem = "_".join(phrases().lower().split()[:2])
    folder = rng.choice(["", "", "src/", "docs/", "/home/user/", "/tmp/", "./data/", "C:/work/", "reports/2024/"])
    return folder + stem + rng.choice([f".{rng.choice(ENDINGS)}", f".{rng.choice(ENDINGS)}", "", "/"])


def _text(name: str, about: str, rng: random.Random, phrases: Phrases) -> str:  # noqa: PLR0912
    words = set(words_of(name))
    said = words | set(words_of(about[:80]))
    if words & {"email", "mail", "recipient"}:
        return f"{rng.choice(FIRST).lower()}.{rng.choice(LAST).lower()}@{rng.choice(SITES)}"
    if words & {"url", "link", "uri", "website", "endpoint"}:
        return rng.choice(["https://", "http://", "www.", ""]) + rng.choice(SITES) + rng.choice(["", "/a/b", "/post/7"])
    if words & {"path", "file", "filename", "filepath", "directory", "folder", "dir"}:
        return _path(rng, phrases)
    if words & {"date", "day", "deadline", "since", "until", "before", "after", "departure", "birthday"}:
        return date(rng)
    if words & {"time", "start", "end", "when", "period", "range", "timestamp"} and "name" not in words:
        return rng.choice([date, clock])(rng)
    if words & {"phone", "telephone", "mobile"}:
        return f"+{rng.randint(1, 99)} {rng.randint(100, 999)} {rng.randint(1000, 999999)}"
    if words & {"id", "ids", "key", "token", "uuid", "hash", "address", "sku", "code"} and not words & {"zip"}:
        return identifier(rng)
    if words & {"city", "location", "place", "destination", "origin", "town", "region", "venue", "area"}:
        return rng.choice(CITIES)
    if words & {"country", "nation"}:
        return rng.choice(COUNTRIES)
    if words & {"currency", "coin"}:
        return rng.choice(CURRENCIES)
    if words & {"symbol", "ticker", "stock"}:
        return rng.choice(SYMBOLS)
    if words & {"language", "lang", "locale"}:
        return rng.choice(LANGUAGES)
    if words & {"color", "colour"}:
        return rng.choice(COLOURS)
    if words & {"format", "extension"}:
        return rng.choice(FORMATS)
    if words & {"username", "user", "author", "owner", "person", "player", "artist", "customer", "assignee"} or (
        words & {"name"} and said & {"person", "patient", "student", "author", "user", "employee", "artist", "player"}
    ):
        return rng.choice([rng.choice(FIRST), f"{rng.choice(FIRST)} {rng.choice(LAST)}", rng.choice(FIRST).lower()])
    if words & {"message", "content", "text", "body", "description", "comment", "prompt", "note"}:
        longer = f"{phrases()} {rng.choice(['and', 'for', 'with', 'is', 'before'])} {phrases()}"
        return _quoted(rng.choice([longer, longer, phrases()]), rng, 0.5)
    if words & {"number", "count", "size", "age", "amount", "limit", "quantity", "duration", "weight"}:
        return _number(name, "integer", rng)
    shape = rng.random()
    if shape < 0.5:
        return _quoted(phrases(), rng, 0.3)
    if shape < 0.7:
        return phrases().title()
    if shape < 0.85:
        return rng.choice(phrases().split())
    return rng.choice([identifier(rng), rng.choice(FIRST), rng.choice(CITIES), phrases().split()[0].title()])


def _quoted(said: str, rng: random.Random, often: float) -> str:
    if rng.random() >= often:
        return said
    return rng.choice(['"{}"', "'{}'", "“{}”", "`{}`"]).format(said)
