"""Text from anywhere made fit to be shown, and values as text."""

import json
from typing import Any


def printable(text: str) -> str:
    """Return text without the control characters that could steer a terminal, or turn its letters around."""
    return "".join(char if char in "\n\t" or char.isprintable() or char == " " else "\ufffd" for char in text)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 tool`, `2,000 tools`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def compact_json(value: Any) -> str:
    """Return JSON without white space."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
