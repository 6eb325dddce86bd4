"""Format values and foreign text for display."""

import json
import re
from typing import Any
from unicodedata import category


def counted(number: int, noun: str) -> str:
    """Return `1 tool` or `2,000 tools`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def byte_size(number: int) -> str:
    """Return a size such as `12 kB` or `3.0 MB`."""
    if number < 1_000:
        return counted(number, "byte")
    return f"{number / 1_000:.0f} kB" if number < 999_500 else f"{number / 1_000_000:,.1f} MB"


def printable(text: str) -> str:
    """Return text with control and direction characters replaced by U+FFFD, and all spaces by the common one."""
    lines = text.replace("\r\n", "\n")
    if lines.isprintable():
        return lines
    return "".join([char if char in "\n\t" or char.isprintable() else _replacement(char) for char in lines])


def _replacement(char: str) -> str:
    return " " if category(char) == "Zs" else "\ufffd"


def escaped(text: str) -> str:
    """Return text with names in place of control, direction and invisible characters, for questions to the user."""
    if not text.isprintable():
        named = (_PICTURES.get(char, f"<U+{ord(char):04X}>") for char in text)
        pairs = zip(text, named, strict=True)
        text = "".join(char if char == "\n" or char.isprintable() else name for char, name in pairs)
    return text if text.isascii() else _INVISIBLE.sub(lambda match: f"<U+{ord(match[0]):04X}>", text)


_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0d\uffa0\U000e0100-\U000e01ef]"
    "|(?<![\u2000-\u33ff\U0001f000-\U0001faff])[\ufe0e\ufe0f]"
)
"""Invisible characters that Unicode counts as printable. Emoji variation selectors after an emoji are harmless."""
_PICTURES = {chr(code): chr(0x2400 + code) for code in range(32)} | {"\t": "\t", "\x7f": "\u2421"}
"""Symbols of control characters, such as `␍` for a carriage return."""


def compact_json(value: Any) -> str:
    """Return JSON without white space."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def fenced(text: str, kind: str = "") -> str:
    """Return text as a Markdown code block that the text cannot close."""
    longest = max((len(ticks) for ticks in re.findall("`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{kind}\n{text}\n{fence}"


def code_span(text: str) -> str:
    """Return text as a Markdown code span of one line that the text cannot close."""
    line = " ".join(text.split())
    longest = max((len(ticks) for ticks in re.findall("`+", line)), default=0)
    ticks = "`" * (longest + 1)
    return f"{ticks} {line} {ticks}" if longest else f"`{line}`"


def shorten(text: str, limit: int = 120) -> str:
    """Return the text on one line, at most `limit` characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def without_credentials(base_url: str) -> str:
    """Return a base URL without user name, password and query."""
    scheme, separator, rest = base_url.partition("?")[0].partition("#")[0].partition("://")
    return scheme + separator + rest.rpartition("@")[2]
