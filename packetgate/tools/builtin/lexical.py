"""Search by words: SQLite FTS5, in memory."""

import re
import sqlite3
from collections.abc import Mapping
from threading import Lock

from packetgate.tools.builtin.corpus import Chunk, Hit, TextFile, best
from packetgate.tools.builtin.failures import ToolFailure
from packetgate.tools.text.words import STOP_WORDS

_CREATE = (
    "CREATE VIRTUAL TABLE chunk USING fts5(path, body, first UNINDEXED, last UNINDEXED, tokenize='porter unicode61')"
)
_INSERT = "INSERT INTO chunk (path, first, last, body) VALUES (?, ?, ?, ?)"
_SEARCH = """
SELECT path, first, last, body, -bm25(chunk, 3.0, 1.0) AS score
FROM chunk WHERE chunk MATCH ? ORDER BY score DESC, path, first LIMIT ?
"""
_COMMON_WORDS = STOP_WORDS | set("find look search show tell".split())


class LexicalIndex:
    """Chunks by their words; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._database: sqlite3.Connection | None = None
        self._files: dict[str, TextFile] = {}
        self._rows: dict[str, list[int]] = {}

    def search(self, files: Mapping[str, TextFile], query: str, top_k: int) -> list[Hit]:
        """Return the best hits among `files`; blocks.

        Raises:
            ToolFailure: the query holds no word.
        """
        match = match_any(query)
        with self._lock:
            try:
                database = self._up_to_date(files)
            except Exception:  # what is noted here is no longer what the database holds
                self._database, self._files, self._rows = None, {}, {}
                raise
            rows = database.execute(_SEARCH, (match, 4 * top_k)).fetchall()
        return best(((Chunk(*row[:4]), row[4]) for row in rows), top_k)

    def _up_to_date(self, files: Mapping[str, TextFile]) -> sqlite3.Connection:
        if self._database is None:
            # The lock does what the check would do: calls come from whichever worker thread is free.
            self._database = sqlite3.connect(":memory:", check_same_thread=False)
            self._database.execute(_CREATE)
        with self._database as database:
            for path in [path for path, file in self._files.items() if files.get(path) is not file]:
                database.executemany("DELETE FROM chunk WHERE rowid = ?", [(row,) for row in self._rows.pop(path)])
                del self._files[path]
            for path in files.keys() - self._files.keys():
                self._rows[path] = [database.execute(_INSERT, chunk).lastrowid or 0 for chunk in files[path].chunks]
                self._files[path] = files[path]
        return database


def match_any(query: str) -> str:
    """Return an FTS5 expression that matches any of the query's words, whatever signs are in it.

    Raises:
        ToolFailure: the query holds no word.
    """
    words = dict.fromkeys(re.findall(r"[^\W_]+", query.casefold()))
    if not words:
        raise ToolFailure(f"the query {query!r} holds no word to search for: say what to look for in words")
    telling = [word for word in words if word not in _COMMON_WORDS]
    return " OR ".join(f'"{word}"' for word in telling or words)
