"""Split texts and identifiers into words, and stem them."""

import re
import unicodedata
from functools import cache, lru_cache
from itertools import chain, filterfalse, pairwise
from threading import Lock
from typing import Any

STOP_WORDS = frozenset(
    "a about all also am an and any are as at be been being but by can could d did do does doesn doing don done for"
    " from had has have he her him his how i if in into is isn it its just let like ll m make may me might more most my"
    " no not now of on or our out over please re s she should so some such t than that the their them then there these"
    " they this those to too under up us use ve want was we were what when where which who why will with would you"
    " your".split()
)
"""Words that say nothing about what a tool does."""

_UNSPACED = r"\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
"""Thai, kana, Chinese characters and Hangul, in which words may follow each other without a space."""

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_TOKEN = re.compile(rf"[{_UNSPACED}]+|[^\W_{_UNSPACED}]+")
_UNSPACED_RUN = re.compile(rf"[{_UNSPACED}]+")

_STEMMER_LOCK = Lock()
"""A stemmer is not thread-safe."""


def words_of(name: str) -> list[str]:
    """Return the lower-case words of an identifier: for `read_textFile2`, these are read, text, file and 2."""
    return list(map(str.lower, _WORD.findall(name)))


def words_in(text: str) -> list[str]:
    """Return the words of a text in order, in lower case and without accents. An identifier also gives its parts.

    In scripts without spaces, each pair of neighbouring characters counts as a word.
    """
    plain = text if text.isascii() else _without_accents(text)
    return [*chain.from_iterable(map(_words_of_token, _TOKEN.findall(plain)))]


@lru_cache(maxsize=50_000)
def _words_of_token(token: str) -> tuple[str, ...]:
    if token.isascii():
        return tuple(dict.fromkeys((token.lower(), *map(str.lower, _WORD.findall(token)))))
    if _UNSPACED_RUN.match(token):
        return tuple(dict.fromkeys((token, *map("".join, pairwise(token)))))
    return (token.casefold(),)


def _without_accents(text: str) -> str:
    letters = (char for char in unicodedata.normalize("NFKD", text) if not unicodedata.combining(char))
    return unicodedata.normalize("NFC", "".join(letters))


def query_terms(request: str) -> list[str]:
    """Return the words of a request without stop words and repeats, in order."""
    return [*filterfalse(STOP_WORDS.__contains__, dict.fromkeys(words_in(request)))]


@lru_cache(maxsize=50_000)
def stem_of(word: str) -> str:
    """Return the Porter stem of a word; a word that is not ASCII is returned unchanged."""
    if not word.isascii():
        return word
    with _STEMMER_LOCK:
        return str(_porter().stemWord(word))


@cache
def _porter() -> Any:
    import Stemmer

    return Stemmer.Stemmer("porter")
