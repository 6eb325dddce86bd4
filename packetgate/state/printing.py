"""Text from anywhere made fit to be shown, and values as text."""

import json
import re
from typing import Any


def counted(number: int, noun: str) -> str:
    """Return a number of things: `1 tool`, `2,000 tools`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def byte_size(number: int) -> str:
    """Return a number of bytes as people read it: `12 kB`, `3 MB`."""
    if number < 1_000:
        return counted(number, "byte")
    return f"{number / 1_000:.0f} kB" if number < 999_500 else f"{number / 1_000_000:,.1f} MB"


def printable(text: str) -> str:
    """Return text without the control characters that could steer a terminal, or turn its letters around."""
    lines = text.replace("\r\n", "\n")
    if lines.isprintable():
        return lines
    return "".join([char if char in "\n\t" or char.isprintable() else "\ufffd" for char in lines])


def escaped(text: str) -> str:
    """Return text with those characters told by name instead, none left out: for what is decided about."""
    if text.isprintable():
        return text
    named = (_PICTURES.get(char, f"<U+{ord(char):04X}>") for char in text)
    return "".join(char if char == "\n" or char.isprintable() else name for char, name in zip(text, named, strict=True))


_PICTURES = {chr(code): chr(0x2400 + code) for code in range(32)} | {"\t": "\t", "\x7f": "\u2421"}
"""Control characters as they are drawn, such as `␍` for a carriage return."""


def compact_json(value: Any) -> str:
    """Return JSON without white space."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def fenced(text: str, kind: str = "") -> str:
    """Return text as a code block of Markdown that nothing in it can close."""
    longest = max((len(ticks) for ticks in re.findall("`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{kind}\n{text}\n{fence}"


def code_span(text: str) -> str:
    """Return text, on one line, as code within Markdown that nothing in it can close."""
    line = " ".join(text.split())
    longest = max((len(ticks) for ticks in re.findall("`+", line)), default=0)
    ticks = "`" * (longest + 1)
    return f"{ticks} {line} {ticks}" if longest else f"`{line}`"


def shorten(text: str, limit: int = 120) -> str:
    """Return the text on one line, at most `limit` characters of it."""
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
