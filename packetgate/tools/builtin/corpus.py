"""The text files of the working folder, cut into chunks, with a full-text index and an index of embeddings."""

import asyncio
import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from packetgate.tools.builtin.files import Root, ToolFailure, lines_of
from packetgate.tools.builtin.tree import BEYOND_LIMITS, NOT_TEXT, TOO_LARGE, UNREADABLE, TreeEntry, read_entry, walk
from packetgate.tools.text.words import STOP_WORDS

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

MAX_SEARCHED_FILES = 5_000
MAX_FILE_BYTES = 1_000_000
MAX_TOTAL_BYTES = 64_000_000
_CHUNK_LINES = 40
_OVERLAP_LINES = 10
_PIECE_CHARS = 500
_BATCH_CHUNKS = 128
"""Least number of chunks in a request for embeddings, if so many are left. Earlier results are kept on failure."""
_CREATE = (
    "CREATE VIRTUAL TABLE chunk USING fts5(path, first UNINDEXED, last UNINDEXED, body, tokenize='porter unicode61')"
)
_SEARCH = """
SELECT path, first, last, body, -bm25(chunk, 3.0, 0, 0, 1.0) AS score
FROM chunk WHERE chunk MATCH ? ORDER BY score DESC, path, first LIMIT ?
"""
_COMMON_WORDS = STOP_WORDS | set("find look search show tell".split())


class Passage(NamedTuple):
    """A range of lines of a file; lines count from 1."""

    path: str
    first_line: int
    last_line: int
    text: str
    score: float = 0.0
    """Higher is better. Scores of different searches are not comparable."""


@dataclass(frozen=True, eq=False)
class TextFile:
    """A scanned file and its chunks."""

    stamp: tuple[int, int]
    """Modification time in nanoseconds, and size in bytes; the next scan reuses a file with the same stamp."""
    chunks: tuple[Passage, ...]
    is_text: bool


Files = dict[str, TextFile]
"""Text files by path."""


class Corpus:
    """The text files of a root. Thread-safe."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._scanned: dict[str, TextFile] = {}
        self._indexed: dict[str, TextFile] = {}
        self._database: sqlite3.Connection | None = None
        self._lock = Lock()

    def scan(self) -> tuple[Files, Counter[str]]:
        """Return the text files, and the number of skipped files by reason. Blocking.

        Raise `OSError` if the root cannot be read.
        """
        with self._lock:
            scanned, skipped, total = dict[str, TextFile](), Counter[str](), 0
            for entry in walk(self._root, self._root.path, skipped):
                size = entry.status.st_size
                if not entry.is_file:
                    continue
                if size > MAX_FILE_BYTES:
                    skipped[TOO_LARGE] += 1
                elif len(scanned) >= MAX_SEARCHED_FILES or total + size > MAX_TOTAL_BYTES:
                    skipped[BEYOND_LIMITS] += 1
                elif file := self._scan_file(entry, skipped):
                    scanned[entry.path], total = file, total + size
            self._scanned = scanned
            files = {path: file for path, file in scanned.items() if file.is_text}
            skipped[NOT_TEXT] += len(scanned) - len(files)
            return files, skipped

    def _scan_file(self, entry: TreeEntry, skipped: Counter[str]) -> TextFile | None:
        stamp = entry.status.st_mtime_ns, entry.status.st_size
        earlier = self._scanned.get(entry.path)
        if earlier is not None and earlier.stamp == stamp:
            return earlier
        failures = Counter[str]()
        text = read_entry(entry, MAX_FILE_BYTES, failures)
        if failures[UNREADABLE]:  # not stored, so that the next scan tries again
            skipped[UNREADABLE] += 1
            return None
        return TextFile(stamp, tuple(split_into_chunks(entry.path, text or "")), is_text=text is not None)

    def search_words(self, files: Files, query: str, top_k: int) -> list[Passage]:
        """Return the best passages of `files` that contain a word of the query. Blocking.

        Raise `ToolFailure` if the query contains no word.
        """
        match = fts_query(query)
        with self._lock:
            try:
                database = self._update_index(files)
            except Exception:  # the database may no longer match `_indexed`
                self._database, self._indexed = None, {}
                raise
            rows = database.execute(_SEARCH, (match, 4 * top_k)).fetchall()
        return _without_overlaps((Passage(*row) for row in rows), top_k)

    def _update_index(self, files: Files) -> sqlite3.Connection:
        if self._database is None:
            self._database = sqlite3.connect(":memory:", check_same_thread=False)  # the lock serializes all threads
            self._database.execute(_CREATE)
        with self._database as database:
            for path in [path for path, file in self._indexed.items() if files.get(path) is not file]:
                database.execute("DELETE FROM chunk WHERE path = ?", (path,))
                del self._indexed[path]
            for path in files.keys() - self._indexed.keys():
                database.executemany(
                    "INSERT INTO chunk VALUES (?, ?, ?, ?)", [chunk[:4] for chunk in files[path].chunks]
                )
                self._indexed[path] = files[path]
        return database


def split_into_chunks(path: str, text: str) -> Iterator[Passage]:
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
            yield Passage(path, part[0][0], part[-1][0], body)


def _without_overlaps(passages: Iterable[Passage], top_k: int) -> list[Passage]:
    """Return the first `top_k` passages that do not overlap an earlier passage."""
    best: list[Passage] = []
    for passage in passages:
        path, first, last = passage[:3]
        if not any(hit.path == path and hit.first_line <= last and first <= hit.last_line for hit in best):
            best.append(passage._replace(score=float(f"{passage.score:.4g}")))
    return best[:top_k]


def fts_query(query: str) -> str:
    """Return an FTS5 expression that matches any word of the query. Raise `ToolFailure` if it contains no word."""
    words = dict.fromkeys(re.findall(r"[^\W_]+", query.casefold()))
    if not words:
        raise ToolFailure(f"the query {query!r} contains no word to search for: describe in words what to look for")
    specific = [word for word in words if word not in _COMMON_WORDS]
    return " OR ".join(f'"{word}"' for word in specific or words)


class EmbeddingIndex:
    """The embeddings of all chunks; each chunk is embedded once."""

    def __init__(self, embeddings: "Embeddings") -> None:
        self._embeddings = embeddings
        self._rows: dict[TextFile, Any] = {}
        """An array for each file, with a row for each of its chunks."""
        self._lock = asyncio.Lock()

    async def search(self, files: Files, query: str, top_k: int) -> list[Passage]:
        """Return the best passages of `files`, by cosine similarity to the query.

        Any error of the embeddings endpoint is raised.
        """
        async with self._lock:  # without the lock, concurrent first queries would embed the same files twice
            await self._embed_new_files(files)
            vector = await self._embeddings.aembed_query(query)
            return await asyncio.to_thread(self._nearest, vector, top_k)

    def _nearest(self, query: list[float], top_k: int) -> list[Passage]:
        import numpy as np

        chunks = [chunk for file in self._rows for chunk in file.chunks]
        if not chunks:
            return []
        vector = np.asarray(query)
        vectors = np.concatenate([rows for rows in self._rows.values() if len(rows)])
        scores = vectors @ vector / (np.linalg.norm(vectors, axis=1) * np.linalg.norm(vector))
        order = np.argsort(-scores, kind="stable")[: 4 * top_k]
        return _without_overlaps((chunks[at]._replace(score=float(scores[at])) for at in order), top_k)

    async def _embed_new_files(self, files: Files) -> None:
        import numpy as np

        current = {*files.values()}
        self._rows = {file: rows for file, rows in self._rows.items() if file in current}
        pending = [file for file in reversed(files.values()) if file not in self._rows]
        while pending:
            batch, texts = list[TextFile](), list[str]()
            while pending and len(texts) < _BATCH_CHUNKS:
                batch.append(pending.pop())
                texts += [chunk.text for chunk in batch[-1].chunks]
            vectors = await self._embeddings.aembed_documents(texts) if texts else []
            if len(vectors) != len(texts):
                raise ValueError(f"the endpoint returned {len(vectors)} embeddings for {len(texts)} texts")
            rows = iter(vectors)
            self._rows |= {file: np.array([next(rows) for _ in file.chunks]) for file in batch}
