"""The stems of English words."""

import sqlite3
from collections.abc import Iterable, Sequence
from threading import Lock

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
