"""HTML in which data cannot become markup: a string is text, and only an `Html` is more."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from importlib.resources.abc import Traversable
from unicodedata import category

_JOINERS = "\u200c\u200d"
"""Invisible, but scripts and emoji are spelt with them."""

NAME = 120


@dataclass(frozen=True)
class Html:
    """Markup, made by `element`."""

    source: str


Content = Html | str | None


def element(tag: str, *content: Content, kind: str = "", **attributes: str) -> Html:
    """Return an element; strings in it are escaped, and None is nothing.

    Args:
        kind: its classes.
        attributes: with `_` for `-`; one that is empty is left out.
    """
    given = {"class": kind, **attributes}
    written = "".join(f' {name.replace("_", "-")}="{_escaped(value)}"' for name, value in given.items() if value)
    return Html(f"<{tag}{written}>{joined(content).source}</{tag}>")


def joined(content: Iterable[Content]) -> Html:
    """Return one after the other."""
    return Html("".join(one.source if isinstance(one, Html) else _escaped(one or "") for one in content))


def stylesheet(*parts: Traversable) -> Html:
    """Return style sheets, which are our own files, as an element. Blocking."""
    return Html(f"<style>{''.join(part.read_text('utf-8') for part in parts)}</style>")


def excerpt(text: str, most: int) -> str:
    """Return the beginning of a text, saying how much of it is left out."""
    text = text.strip()
    return text if len(text) <= most else f"{text[:most]} … ({len(text) - most:,} more characters)"


def name(text: str) -> str:
    """Return a text that is a name: a line, not longer than names are."""
    return excerpt(" ".join(text.split()), NAME)


def visible(text: str) -> str:
    """Return a text with what cannot be seen, or turns the writing around, as its number in brackets."""
    return "".join(map(_visible, text.replace("\r\n", "\n")))


def _escaped(text: str) -> str:
    return escape(visible(text))


@lru_cache(4096)
def _visible(char: str) -> str:
    hidden = category(char) in {"Cc", "Cf", "Cs"} and char not in "\n\t" + _JOINERS
    return f"⟨U+{ord(char):04X}⟩" if hidden else char
