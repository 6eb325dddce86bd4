"""Text files below the working folder, in chunks, with a full-text index and an index of embeddings."""

import asyncio
import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from packetgate.tools.builtin.files import Root, ToolFailure, lines_of
from packetgate.tools.builtin.tree import BEYOND_LIMITS, NOT_TEXT, TOO_LARGE, TreeEntry, text_of, walk
from packetgate.tools.text.words import STOP_WORDS

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

MAX_SEARCHED_FILES = 5_000
MAX_FILE_BYTES = 1_000_000
MAX_TOTAL_BYTES = 64_000_000
_CHUNK_LINES = 40
_OVERLAP_LINES = 10
_PIECE_CHARS = 500
_BATCH = 128
"""Chunks embedded at a time. Finished batches are kept when a later one fails."""
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
    """A file as of its stamp: modification time in nanoseconds and size in bytes. A scan keeps unchanged files."""

    stamp: tuple[int, int]
    chunks: tuple[Passage, ...]
    is_text: bool


Files = dict[str, TextFile]
"""Text files by path."""


class Corpus:
    """The text files of a root. Thread-safe."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._known: dict[str, TextFile] = {}
        self._indexed: dict[str, TextFile] = {}
        self._database: sqlite3.Connection | None = None
        self._lock = Lock()

    def scan(self) -> tuple[Files, Counter[str]]:
        """Return the files to search, and the numbers of other files by reason. Blocking.

        Raise `OSError` if the root cannot be read.
        """
        with self._lock:
            known, left_out, total = dict[str, TextFile](), Counter[str](), 0
            for entry in walk(self._root, self._root.path, left_out):
                size = entry.status.st_size
                if not entry.is_file:
                    continue
                if size > MAX_FILE_BYTES:
                    left_out[TOO_LARGE] += 1
                elif len(known) >= MAX_SEARCHED_FILES or total + size > MAX_TOTAL_BYTES:
                    left_out[BEYOND_LIMITS] += 1
                else:
                    known[entry.path], total = self._file(entry), total + size
            self._known = known
            files = {path: file for path, file in known.items() if file.is_text}
            left_out[NOT_TEXT] += len(known) - len(files)
            return files, left_out

    def _file(self, entry: TreeEntry) -> TextFile:
        stamp = entry.status.st_mtime_ns, entry.status.st_size
        before = self._known.get(entry.path)
        if before is not None and before.stamp == stamp:
            return before
        text = text_of(entry, MAX_FILE_BYTES, Counter())
        return TextFile(stamp, tuple(chunks_of(entry.path, text or "")), is_text=text is not None)

    def by_words(self, files: Files, query: str, top_k: int) -> list[Passage]:
        """Return the best passages of `files` that have a word of the query. Blocking.

        Raise `ToolFailure` if the query has no word.
        """
        match = match_any(query)
        with self._lock:
            try:
                database = self._index(files)
            except Exception:  # the database and `_indexed` no longer agree
                self._database, self._indexed = None, {}
                raise
            rows = database.execute(_SEARCH, (match, 4 * top_k)).fetchall()
        return _best((Passage(*row) for row in rows), top_k)

    def _index(self, files: Files) -> sqlite3.Connection:
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


def chunks_of(path: str, text: str) -> Iterator[Passage]:
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


def _best(passages: Iterable[Passage], top_k: int) -> list[Passage]:
    """Return the first `top_k` passages, without those that overlap a better one."""
    best: list[Passage] = []
    for passage in passages:
        path, first, last = passage[:3]
        if not any(hit.path == path and hit.first_line <= last and first <= hit.last_line for hit in best):
            best.append(passage._replace(score=float(f"{passage.score:.4g}")))
    return best[:top_k]


def match_any(query: str) -> str:
    """Return an FTS5 expression that matches any word of the query. Raise `ToolFailure` if the query has no word."""
    words = dict.fromkeys(re.findall(r"[^\W_]+", query.casefold()))
    if not words:
        raise ToolFailure(f"the query {query!r} has no word to search for: say what to look for in words")
    specific = [word for word in words if word not in _COMMON_WORDS]
    return " OR ".join(f'"{word}"' for word in specific or words)


class EmbeddingIndex:
    """An index of chunks by their embeddings."""

    def __init__(self, embeddings: "Embeddings") -> None:
        self._embeddings = embeddings
        self._rows: dict[TextFile, Any] = {}
        """An array for each file, with a row for each of its chunks."""
        self._lock = asyncio.Lock()

    async def search(self, files: Files, query: str, top_k: int) -> list[Passage]:
        """Return the best passages of `files`, by cosine similarity to the query. Raises errors of the endpoint."""
        async with self._lock:  # so that concurrent first queries do not pay for the same files twice
            await self._update(files)
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
        return _best((chunks[at]._replace(score=float(scores[at])) for at in order), top_k)

    async def _update(self, files: Files) -> None:
        import numpy as np

        current = {*files.values()}
        self._rows = {file: rows for file, rows in self._rows.items() if file in current}
        waiting = [file for file in reversed(files.values()) if file not in self._rows]
        while waiting:
            batch, texts = list[TextFile](), list[str]()
            while waiting and len(texts) < _BATCH:
                batch.append(waiting.pop())
                texts += [chunk.text for chunk in batch[-1].chunks]
            vectors = await self._embeddings.aembed_documents(texts) if texts else []
            if len(vectors) != len(texts):
                raise ValueError(f"{len(texts)} texts were sent and {len(vectors)} embeddings came back")
            rows = iter(vectors)
            self._rows |= {file: np.array([next(rows) for _ in file.chunks]) for file in batch}
