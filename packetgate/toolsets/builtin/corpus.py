"""The text files of the working folder as passages, found by words or by embeddings."""

import asyncio
import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from packetgate.tools.text.words import STOP_WORDS
from packetgate.toolsets.builtin.files import Root, ToolFailure, lines_of
from packetgate.toolsets.builtin.tree import UNREADABLE, texts_below, walk

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

MAX_SEARCHED_FILES = 5_000
MAX_FILE_BYTES = 1_000_000
MAX_TOTAL_BYTES = 64_000_000
_CHUNK_LINES = 40
_OVERLAP_LINES = 10
_PIECE_CHARS = 500
_BATCH_CHUNKS = 128
"""Chunks in a request for embeddings. Earlier results are kept on failure."""
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


class Scan:
    """The passages of all text files at one time. Thread-safe."""

    def __init__(self, files: int, chunks: list[Passage], skipped: Counter[str]) -> None:
        self.files, self.chunks, self.skipped = files, chunks, skipped
        self._lock = Lock()

    @cached_property
    def _database(self) -> sqlite3.Connection:
        database = sqlite3.connect(":memory:", check_same_thread=False)  # the lock serializes all threads
        database.execute(_CREATE)
        database.executemany("INSERT INTO chunk VALUES (?, ?, ?, ?)", [chunk[:4] for chunk in self.chunks])
        return database

    def search_words(self, query: str, top_k: int) -> list[Passage]:
        """Return the best passages that contain a word of the query. Blocking.

        Raise `ToolFailure` if the query contains no word.
        """
        match = fts_query(query)
        with self._lock:
            rows = self._database.execute(_SEARCH, (match, 4 * top_k)).fetchall()
        return _without_overlaps((Passage(*row) for row in rows), top_k)


class Corpus:
    """The text files of a root. Thread-safe."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._stamps: list[tuple[str, int, int]] = []
        self._last = Scan(0, [], Counter())
        self._lock = Lock()

    def scan(self) -> Scan:
        """Return the passages of the text files; the last ones if no file changed. Blocking.

        Raise `OSError` if the root cannot be read.
        """
        with self._lock:
            files = [entry for entry in walk(self._root, self._root.path, Counter()) if entry.is_file]
            stamps = [(file.path, file.status.st_mtime_ns, file.status.st_size) for file in files]
            if stamps != self._stamps or not stamps:
                skipped = Counter[str]()
                texts = [
                    *texts_below(
                        self._root,
                        self._root.path,
                        skipped,
                        file_bytes=MAX_FILE_BYTES,
                        total_bytes=MAX_TOTAL_BYTES,
                        files=MAX_SEARCHED_FILES,
                    )
                ]
                chunks = [chunk for path, text in texts for chunk in split_into_chunks(path, text)]
                self._last = Scan(len(texts), chunks, skipped)
                self._stamps = [] if skipped[UNREADABLE] else stamps  # the next scan tries unreadable files again
            return self._last


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
    """The embeddings of passages; each text is embedded once."""

    def __init__(self, embeddings: "Embeddings") -> None:
        self._embeddings = embeddings
        self._vectors: dict[str, list[float]] = {}
        self._lock = asyncio.Lock()

    async def search(self, chunks: list[Passage], query: str, top_k: int) -> list[Passage]:
        """Return the best passages, by cosine similarity to the query.

        Any error of the embeddings endpoint is raised.
        """
        async with self._lock:  # without the lock, concurrent first queries would embed the same texts twice
            texts = dict.fromkeys(chunk.text for chunk in chunks)
            self._vectors = {text: vector for text, vector in self._vectors.items() if text in texts}
            pending = [text for text in texts if text not in self._vectors]
            for start in range(0, len(pending), _BATCH_CHUNKS):
                batch = pending[start : start + _BATCH_CHUNKS]
                vectors = await self._embeddings.aembed_documents(batch)
                if len(vectors) != len(batch):
                    raise ValueError(f"the endpoint returned {len(vectors)} embeddings for {len(batch)} texts")
                self._vectors |= zip(batch, vectors, strict=True)
            vector = await self._embeddings.aembed_query(query)
            return await asyncio.to_thread(self._nearest, chunks, vector, top_k)

    def _nearest(self, chunks: list[Passage], query: list[float], top_k: int) -> list[Passage]:
        import numpy as np

        if not chunks:
            return []
        vectors: Any = np.array([self._vectors[chunk.text] for chunk in chunks])
        scores = vectors @ np.asarray(query) / (np.linalg.norm(vectors, axis=1) * np.linalg.norm(query))
        order = np.argsort(-scores, kind="stable")[: 4 * top_k]
        return _without_overlaps((chunks[at]._replace(score=float(scores[at])) for at in order), top_k)
