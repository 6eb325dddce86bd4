"""Text files below the working folder, in chunks, with a full-text index."""

import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import NamedTuple

from packetgate.tools.builtin.files import Root, ToolFailure, decode, lines_of, os_failures, read_in_folder
from packetgate.tools.builtin.tree import BEYOND_LIMITS, UNREADABLE_FILES, WITHHELD, TreeEntry, walk
from packetgate.tools.text.words import STOP_WORDS

MAX_SEARCHED_FILES = 5_000
MAX_FILE_BYTES = 1_000_000
MAX_TOTAL_BYTES = 64_000_000
_CHUNK_LINES = 40
_OVERLAP_LINES = 10
_PIECE_CHARS = 500
_CREATE = (
    "CREATE VIRTUAL TABLE chunk USING fts5(path, body, first UNINDEXED, last UNINDEXED, tokenize='porter unicode61')"
)
_INSERT = "INSERT INTO chunk (path, first, last, body) VALUES (?, ?, ?, ?)"
_SEARCH = """
SELECT path, first, last, body, -bm25(chunk, 3.0, 1.0) AS score
FROM chunk WHERE chunk MATCH ? ORDER BY score DESC, path, first LIMIT ?
"""
_COMMON_WORDS = STOP_WORDS | set("find look search show tell".split())


class Chunk(NamedTuple):
    """A range of lines of a file; lines count from 1."""

    path: str
    first_line: int
    last_line: int
    text: str


class Hit(NamedTuple):
    """A chunk that matches a query."""

    path: str
    first_line: int
    last_line: int
    score: float
    """Higher is better. Scores of different searches are not comparable."""
    text: str


@dataclass(frozen=True)
class TextFile:
    """A file as of its stamp: modification time in nanoseconds and size in bytes."""

    stamp: tuple[int, int]
    chunks: tuple[Chunk, ...]
    is_text: bool


@dataclass(frozen=True)
class Scan:
    """The files to search. An unchanged file is the same object in every scan."""

    files: Mapping[str, TextFile]
    left_out: Mapping[str, int]
    """Number of files that are not in `files`, by reason."""


class Corpus:
    """The text files of a root. Thread-safe."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._known: dict[str, TextFile] = {}
        self._lock = Lock()

    def scan(self) -> Scan:
        """Read the files that are new or changed. Blocking.

        Raises:
            ToolFailure: the root cannot be read.
        """
        with self._lock, os_failures(f"search {self._root.path}"):
            known: dict[str, TextFile] = {}
            skipped, total = Counter[str](), 0
            for entry in walk(self._root, self._root.path, skipped):
                size = entry.status.st_size
                if not entry.is_file:
                    continue
                if size > MAX_FILE_BYTES:
                    skipped["too large"] += 1
                elif len(known) >= MAX_SEARCHED_FILES or total + size > MAX_TOTAL_BYTES:
                    skipped[BEYOND_LIMITS] += 1
                else:
                    try:
                        known[entry.path] = self._file(entry)
                        total += size
                    except OSError:
                        skipped[UNREADABLE_FILES] += 1
            self._known = known
            files = {path: file for path, file in known.items() if file.is_text}
            left_out = {
                "too_large": skipped["too large"],
                "not_text": len(known) - len(files),
                "beyond_limits": skipped[BEYOND_LIMITS],
                "unreadable": skipped[UNREADABLE_FILES],
                "secret_or_denied": skipped[WITHHELD],
            }
            return Scan(files, left_out)

    def _file(self, entry: TreeEntry) -> TextFile:
        stamp = entry.status.st_mtime_ns, entry.status.st_size
        known = self._known.get(entry.path)
        if known is not None and known.stamp == stamp:
            return known
        try:
            text = decode(read_in_folder(entry.name, entry.folder, MAX_FILE_BYTES), entry.path)
            return TextFile(stamp, tuple(chunks_of(entry.path, text)), is_text=True)
        except ToolFailure:  # not text, or grown or replaced just now
            return TextFile(stamp, (), is_text=False)


def chunks_of(path: str, text: str) -> Iterator[Chunk]:
    """Cut a text into overlapping chunks of at most 40 lines; a very long line counts as several."""
    pieces = [
        (number, line[start : start + _PIECE_CHARS])
        for number, line in enumerate(lines_of(text), 1)
        for start in range(0, max(len(line), 1), _PIECE_CHARS)
    ]
    for start in range(0, max(len(pieces) - _OVERLAP_LINES, 1), _CHUNK_LINES - _OVERLAP_LINES):
        part = pieces[start : start + _CHUNK_LINES]
        body = "\n".join(piece for _, piece in part)
        if body.strip():
            yield Chunk(path, part[0][0], part[-1][0], body)


def best_hits(scored: Iterable[tuple[Chunk, float]], top_k: int) -> list[Hit]:
    """Return the first `top_k` hits, without chunks that overlap a better one."""
    hits: list[Hit] = []
    for (path, first, last, text), score in scored:
        if not any(hit.path == path and hit.first_line <= last and first <= hit.last_line for hit in hits):
            hits.append(Hit(path, first, last, float(f"{score:.4g}"), text))
    return hits[:top_k]


class LexicalIndex:
    """A full-text index of chunks. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._database: sqlite3.Connection | None = None
        self._files: dict[str, TextFile] = {}

    def search(self, files: Mapping[str, TextFile], query: str, top_k: int) -> list[Hit]:
        """Return the best hits among `files`. Blocking.

        Raises:
            ToolFailure: the query has no word.
        """
        match = match_any(query)
        with self._lock:
            try:
                database = self._update(files)
            except Exception:  # the database and `_files` no longer agree
                self._database, self._files = None, {}
                raise
            rows = database.execute(_SEARCH, (match, 4 * top_k)).fetchall()
        return best_hits(((Chunk(*row[:4]), row[4]) for row in rows), top_k)

    def _update(self, files: Mapping[str, TextFile]) -> sqlite3.Connection:
        if self._database is None:
            self._database = sqlite3.connect(":memory:", check_same_thread=False)  # the lock serializes all threads
            self._database.execute(_CREATE)
        with self._database as database:
            for path in [path for path, file in self._files.items() if files.get(path) is not file]:
                database.execute("DELETE FROM chunk WHERE path = ?", (path,))
                del self._files[path]
            for path in files.keys() - self._files.keys():
                database.executemany(_INSERT, files[path].chunks)
                self._files[path] = files[path]
        return database


def match_any(query: str) -> str:
    """Return an FTS5 expression that matches any word of the query.

    Raises:
        ToolFailure: the query has no word.
    """
    words = dict.fromkeys(re.findall(r"[^\W_]+", query.casefold()))
    if not words:
        raise ToolFailure(f"the query {query!r} has no word to search for: say what to look for in words")
    specific = [word for word in words if word not in _COMMON_WORDS]
    return " OR ".join(f'"{word}"' for word in specific or words)
