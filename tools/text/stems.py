"""The stems of English words."""

from functools import cache, lru_cache
from threading import Lock
from typing import Any

_ONE_AT_A_TIME = Lock()
"""A stemmer holds the word that it works on."""


@lru_cache(maxsize=50_000)
def stem_of(word: str) -> str:
    """Return a word's stem, by Porter; a word that is not plain ASCII is its own."""
    if not word.isascii():
        return word
    with _ONE_AT_A_TIME:
        return str(_porter().stemWord(word))


@cache
def _porter() -> Any:
    import snowballstemmer

    return snowballstemmer.stemmer("porter")
