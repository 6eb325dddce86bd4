"""Make links and images in answers inert, because front ends fetch images and create links without asking.

Addresses that the user did not write are defanged (`https[:]//`); links, images, definitions and HTML are broken by a
space, which works in every context. Fenced code stays, and fences move to the beginning of a line, where all
renderers recognize them.
"""

import html
import re
from functools import cached_property

_REFERENCE = re.compile(r"&(?:#\d{1,7}|#[xX][\da-fA-F]{1,6}|[A-Za-z]\w{1,31});", re.ASCII)
_SIGN = re.compile(
    r"\\?(?P<colon>:)(?=\\?/\\?/)|(?<=www)\\?(?P<dot>\.)|(?<=[-\w.+])\\?(?P<at>@)(?=[-\w.\\]*\.[a-z])",
    re.ASCII | re.IGNORECASE,
)
"""The signs by which renderers recognize an address, with the backslashes that they ignore."""
_ADDRESS = re.compile(r"(?:(?![\[\]()<>\"`*|])[!-~])+")
_SYNTAX = re.compile(r"\](?=[(:])|<(?=[A-Za-z/!?])")
_LAST_WORD = re.compile(r"[!-~]*\Z")

_MARKERS = r"[ \t]*+(?:(?:[-*+]|\d{1,9}+[.)])[ \t]++)*+"
_OPENING = re.compile(rf"({_MARKERS})(`{{3,}}(?=[^`]*\Z)|~{{3,}})(.*)")
_MAY_OPEN = re.compile(rf"{_MARKERS}(?:[-*+]|\d{{1,9}}+[.)]?|`++[^`]*+|~.*+|\$)?")
_MAY_CLOSE = re.compile(r"[ \t]*+(?:`*+|~*+)[ \t]*+")


def with_inert_links(markdown: str, user_words: str) -> str:
    """Return Markdown in which only addresses that the user wrote are active."""
    links = LinkFilter(user_words)
    return links.feed(markdown) + links.close()


class LinkFilter:
    """Makes links in streamed Markdown inert. Holds back the last word, or a line that may be a fence."""

    def __init__(self, user_words: str) -> None:
        self._user_words = user_words
        self._held = ""
        self._begins = True
        self._fence = ""
        self._has_math = False

    def feed(self, text: str) -> str:
        """Return the text that can be shown now."""
        *lines, last = (self._held + text).split("\n")
        shown = "".join(self._line(line) + "\n" for line in lines)
        if self._begins and (_MAY_CLOSE if self._fence else _MAY_OPEN).fullmatch(last):
            self._held = last
            return shown
        word = _LAST_WORD.search(last)
        end = len(last) if self._is_code or word is None else word.start()
        self._held = last[end:]
        return shown + self._inert_unless_code(last[:end]) if end else shown

    def close(self) -> str:
        """Return the rest of the text, which was held back."""
        rest, self._held = self._held, ""
        return self._line(rest)

    @cached_property
    def _user_addresses(self) -> set[str]:
        return {*map(_address, _ADDRESS.finditer(self._user_words))} - {""}

    @property
    def _is_code(self) -> bool:
        return bool(self._fence) and not self._has_math

    def _line(self, line: str) -> str:
        shown = (self._read_fence(line) if self._begins else None) or self._inert_unless_code(line)
        self._begins = True
        return shown

    def _inert_unless_code(self, text: str) -> str:
        if self._begins and not self._fence and text.lstrip(" \t").startswith("$$"):
            self._has_math = True
        self._begins = False
        return text if self._is_code else self._inert(text)

    def _read_fence(self, line: str) -> str | None:
        if self._fence:
            mark = line.strip(" \t")
            if not mark.startswith(self._fence) or mark.strip(self._fence[0]):
                return None
            self._fence = ""
            return mark
        found = _OPENING.fullmatch(line)
        if found is None:
            return None
        markers, self._fence, info = found.groups()
        return (f"{markers}\n" if markers.strip() else "") + self._fence + info

    def _inert(self, text: str) -> str:
        decoded = _REFERENCE.sub(_decoded, text)
        while decoded != text:
            text, decoded = decoded, _REFERENCE.sub(_decoded, decoded)
        return _SYNTAX.sub(r"\g<0> ", _ADDRESS.sub(self._defanged, text))

    def _defanged(self, address: re.Match[str]) -> str:
        kept = not _SIGN.search(address[0]) or _address(address) in self._user_addresses
        return address[0] if kept else _SIGN.sub(lambda sign: f"[{sign[0][-1]}]", address[0])


def _address(found: re.Match[str]) -> str:
    continues = found.string[found.end() : found.end() + 1] > "~"
    return "" if continues or not _SIGN.search(found[0]) else found[0].rstrip(".,;:!?'_~\\")


def _decoded(reference: re.Match[str]) -> str:
    char = html.unescape(reference[0])
    return char if char.isascii() and (char.isalnum() or char in ":/.@") else reference[0]
