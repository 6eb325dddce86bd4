"""The words of a text that a search goes by, and their stems."""

import re
import sqlite3
import unicodedata
from collections.abc import Iterable, Sequence
from threading import Lock

from tools.risk import words_of

STOP_WORDS = frozenset(
    "a about all also am an and any are as at be been being but by can could d did do does doesn doing don done for"
    " from had has have he her him his how i if in into is isn it its just let like ll m make may me might more most my"
    " no not now of on or our out over please re s she should so some such t than that the their them then there these"
    " they this those to too under up us use ve want was we were what when where which who why will with would you"
    " your".split()
)
"""Words that say nothing of what a tool does. What else is too common to tell tools apart shows in how many hold it."""

_UNSPACED = r"\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
"""Thai, kana, Chinese characters and Hangul: runs of them hold several words, or words with endings."""

_TOKEN = re.compile(rf"[{_UNSPACED}]+|[^\W_{_UNSPACED}]+")
_UNSPACED_RUN = re.compile(rf"[{_UNSPACED}]+")


def words_in(text: str) -> list[str]:
    """Return a text's words in order: lower-case, without accents; identifiers whole and in parts.

    Where words are not spaced, each pair of neighbouring characters stands for a word.
    """
    return [word for token in _TOKEN.findall(_without_accents(text)) for word in dict.fromkeys(_words_of_token(token))]


def _words_of_token(token: str) -> list[str]:
    if token.isascii():
        return [token.lower(), *words_of(token)]
    if _UNSPACED_RUN.match(token):
        return [token, *(token[at : at + 2] for at in range(len(token) - 1))]
    return [token.casefold()]


def _without_accents(text: str) -> str:
    if text.isascii():
        return text
    letters = (one for one in unicodedata.normalize("NFKD", text) if not unicodedata.combining(one))
    return unicodedata.normalize("NFC", "".join(letters))


KEPT_STEMS = 50_000
"""Stems kept at hand: a turn asks for those of its own words several times."""


class Stemmer:
    """Porter's stemmer, which SQLite's full-text search carries; for threads to share."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: dict[str, str] = {}
        self._db = sqlite3.connect(":memory:", check_same_thread=False)
        self._db.execute("CREATE VIRTUAL TABLE word USING fts5(text, tokenize = 'porter ascii')")
        self._db.execute("CREATE VIRTUAL TABLE stem USING fts5vocab(word, instance)")

    def stems(self, words: Iterable[str]) -> dict[str, str]:
        """Return each word's stem; a word that is not plain ASCII is its own."""
        wanted = dict.fromkeys(words)
        with self._lock:
            if len(self._known) > KEPT_STEMS:
                self._known.clear()
            new = [word for word in wanted if word not in self._known]
            if new:
                self._known |= self._looked_up(new)
            return {word: self._known[word] for word in wanted}

    def _looked_up(self, words: Sequence[str]) -> dict[str, str]:
        english = [word for word in words if word.isascii()]
        self._db.executemany("INSERT INTO word(rowid, text) VALUES (?, ?)", enumerate(english))
        found = self._db.execute("SELECT doc, term FROM stem").fetchall()
        self._db.rollback()
        return {word: word for word in words} | {english[row]: stem for row, stem in found}
