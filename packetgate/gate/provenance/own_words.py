"""The user's own words, and the only form in which a call may send them outside without approval."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from urllib.parse import quote, quote_plus, unquote, unquote_plus

from packetgate.tools.text.hosts import host_in
from packetgate.tools.text.values import (
    NUMBER_WORDS,
    NormalizedValue,
    find_words,
    fold_text,
    is_address,
    normalized_values_in,
    normalized_values_of,
)
from packetgate.tools.text.words import STOP_WORDS, stem_of

_ADDRESS_SEPARATORS = re.compile(r"[\s<>\"'`()\[\]{},;|\u2018-\u201f]+")
_DOMAIN = re.compile(r"\.[a-z][a-z0-9-]+$")
_QUOTES = "\"'`*_" + "".join(map(chr, range(0x2018, 0x2020)))
_OPENING, _CLOSING = f"([{{<\xab\xbf\xa1{_QUOTES}", f".,;:!?)]}}>\xbb\u2026{_QUOTES}"
_ADDRESS = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*)://)?([^/?#]*)(.*)", re.DOTALL)
_PLAIN = re.compile(r"[!-$&-~]+")
_PORTS = {"http": ":80", "https": ":443"}
_LINK_WORDS = frozenset("a an and at by for from in is of on or the to with".split())
_MAX_LINK_WORDS = 2
_LEAST_SENT, _WORDS_FOR_ONE = 4, 3


@dataclass(frozen=True)
class UserWords:
    """The user's own words."""

    text: str

    @cached_property
    def folded(self) -> str:
        """The words in their form for comparison."""
        return fold_text(self.text)

    @cached_property
    def normalized_values(self) -> frozenset[NormalizedValue]:
        """The numbers, dates and accounts in the user's words. Number words count, except `one`."""
        spelt = (NUMBER_WORDS[word] for word in self.folded.split() if NUMBER_WORDS.get(word, 1) > 1)
        return frozenset([*normalized_values_in(self.folded), *(("number", Decimal(number)) for number in spelt)])

    def contain(self, text: str) -> bool:
        """Return whether the user's words contain the words of a folded text consecutively."""
        return find_words(self.folded, text) >= 0

    def state(self, text: str) -> bool:
        """Return whether the user's words contain a folded text, or name all its numbers, dates and accounts."""
        values = normalized_values_of(text)
        is_named = bool(values) and all(not self.normalized_values.isdisjoint(options) for options in values)
        return is_named or self.contain(text)

    @cached_property
    def _addresses(self) -> dict[str, list[str]]:
        """The addresses, as written, by host."""
        found: dict[str, list[str]] = {}
        for part in _ADDRESS_SEPARATORS.split(self.text):
            address = part.strip(".:!?*_~-")
            if "://" in address or is_address(address) or ("." in address and not address.isascii()):
                found.setdefault(host_in(address).removeprefix("www."), []).append(address)
        return {host: written for host, written in found.items() if host}

    def domain_of(self, host: str) -> str:
        """Return the host that the user named if `host` is this host or below it; otherwise ""."""
        ends = (host[match.end() :] for match in re.finditer(r"^|\.", host)) if host else ()
        return next((end for end in ends if end in self._addresses and (end == host or _DOMAIN.search(end))), "")

    @property
    def max_sent(self) -> int:
        """The number of different values made of these words that a session may send outside without approval."""
        return max(_LEAST_SENT, len({*self.text.split()}) // _WORDS_FOR_ONE)

    @cached_property
    def _word_starts(self) -> frozenset[int]:
        return frozenset(start for start, _ in _words_in(self.text))

    @cached_property
    def _word_ends(self) -> frozenset[int]:
        possessives = (match.start() for match in re.finditer(r"['\u2019]s\b", self.text))
        return frozenset([*(start + len(word) for start, word in _words_in(self.text)), *possessives])

    def write(self, text: str) -> bool:
        """Return whether a text is one or more consecutive words, exactly as the user wrote them."""
        places = re.finditer(f"(?={re.escape(text)})", self.text) if text else ()
        return any(at.start() in self._word_starts and at.start() + len(text) in self._word_ends for at in places)

    def is_whole_address(self, address: str) -> bool:
        """Return whether the user wrote this address; a `/` may be added."""
        return any(
            address.removesuffix("/") == one.removesuffix("/") for own in self._addresses.values() for one in own
        )

    def write_address(self, address: str) -> bool:
        """Return whether an address appends consecutive words of the user to an address that the user wrote.

        The words are a path (`/blue%20widgets`), or the value after an address that ends with `=` (`blue%20widgets` or
        `blue+widgets`). No other form counts: case, order and signs between the words are the user's.
        """
        return any(
            scheme == (own_scheme or "https") and authority in authorities and self._write_tail(own_tail, tail)
            for scheme, authority, tail, own_scheme, authorities, own_tail in self._compared(address)
        )

    def _write_tail(self, own: str, tail: str) -> bool:
        if own.endswith("="):
            value = tail.removeprefix(own) if tail.startswith(own) else ""
            plus, percent = unquote_plus(value), unquote(value)
            return (value == quote_plus(plus) and self._write_phrase(plus)) or (
                value == quote(percent, safe="") and self._write_phrase(percent)
            )
        folder = f"{own.rstrip('/')}/"
        return "?" not in own and tail.startswith(folder) and self.write_path(tail[len(folder) :])

    def write_path(self, path: str) -> bool:
        """Return whether a relative path is one of the user's words, as written, or several joined with `%20`."""
        plain = unquote(path)
        is_encoded = not _PLAIN.fullmatch(plain) and quote(plain, safe="/") == path
        return self.write(path) or self.write(f"/{path}") or (is_encoded and self._write_phrase(plain))

    def _write_phrase(self, text: str) -> bool:
        """Return whether a text is consecutive words; several words neither begin nor end with a stop word."""
        first, *_, last = text.lower().split(" ") if " " in text else ("", "")
        return first not in STOP_WORDS and last not in STOP_WORDS and self.write(text)

    def name_address(self, address: str) -> bool:
        """Return whether an address is one that the user wrote, or its beginning, up to a sign such as `/`.

        `https://` may be added, or the scheme left out. `www.` or one word of the user may precede the host.
        """
        return any(
            scheme in ("", "https", own_scheme or "http")
            and (tail in ("", "/") or (own_tail.startswith(tail) and f"{own_tail}/"[len(tail)] in "/?#&"))
            and any(self._names_host(authority.removesuffix(_PORTS.get(scheme, "")), own) for own in authorities)
            for scheme, authority, tail, own_scheme, authorities, own_tail in self._compared(address)
        )

    def _names_host(self, authority: str, own: str) -> bool:
        word = authority.removesuffix(own).removesuffix(".")
        is_below = authority == f"{word}.{own}" and (word == "www" or (word.islower() and self.write(word)))
        return is_below or authority in (own, own.removeprefix("www."))

    def _compared(self, address: str) -> Iterator[tuple[str, str, str, str, list[str], str]]:
        """Yield the scheme, authority and tail of an address, and those of each address of the user with this host."""
        parts = _ADDRESS.fullmatch(address)
        for written in self._addresses.get(self.domain_of(host_in(address)), ()) if parts else ():
            if parts and (own := _ADDRESS.fullmatch(written)):
                port = re.search(r":\d+$", own[2])
                authorities = [own[2], f"{host_in(written)}{port[0] if port else ''}"]
                yield parts[1] or "", parts[2], parts[3], own[1] or "", authorities, own[3]

    def rephrase(self, text: str) -> bool:
        """Return whether a text contains only the user's words, each as often as the user wrote it.

        They are in the user's order, except that a part may be moved to the front ("tulip care" for "care of tulips").
        Single spaces separate them. A word has the user's capitals, or all letters are small. It may have another form,
        such as the plural. At most `_MAX_LINK_WORDS` of `_LINK_WORDS` are added.
        """
        left, places, added = {form: [*own] for form, own in self._words_by_form.items()}, list[int](), 0
        is_small = text.islower()
        for word in text.split(" "):
            own = left.get(_word_form(word), [])
            later = [one for one in own if not places or one[0] > places[-1]] or own
            fitting = [one for one in later if one[1] == word or f"{word}{'' if is_small else one[1]}".islower()]
            if fitting:
                own.remove(fitting[0])
                places.append(fitting[0][0])
            elif word in _LINK_WORDS:
                added += 1
            else:
                return False
        falls = sum(first > then for first, then in pairwise(places))
        return bool(places) and falls <= 1 and added <= _MAX_LINK_WORDS

    @cached_property
    def _words_by_form(self) -> dict[str, list[tuple[int, str]]]:
        words: dict[str, list[tuple[int, str]]] = {}
        text = "\n".join(dict.fromkeys(self.text.splitlines()))  # a repeated message adds nothing
        for place, (_, word) in enumerate(_words_in(text)):
            words.setdefault(_word_form(word), []).append((place, word))
        return words


def _words_in(text: str) -> Iterator[tuple[int, str]]:
    """Yield the start and the text of each word between blanks, without surrounding marks."""
    for match in re.finditer(r"\S+", text):
        word = match[0].lstrip(_OPENING)
        start = match.end() - len(word)
        if word := word.rstrip(_CLOSING):
            yield start, word


def _word_form(word: str) -> str:
    lower = word.lower()
    return stem_of(lower) if len(lower) > 3 and lower.isalpha() else lower
