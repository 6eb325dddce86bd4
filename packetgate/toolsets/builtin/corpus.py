"""The text files of the working folder as passages, found by words or by embeddings."""

import asyncio
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from packetgate.tools.text.words import STOP_WORDS
from packetgate.toolsets.builtin.files import Root, ToolFailure, lines_of
from packetgate.toolsets.builtin.tree import UNREADABLE, texts_below, walk

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

MAX_FILE_BYTES = 1_000_000
_PASSAGE_LINES = 40
_PIECE_CHARS = 500
_BATCH_PASSAGES = 128
"""Passages in a request for embeddings. Earlier results are kept on failure."""
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

    @property
    def place(self) -> str:
        """The path and the lines."""
        return f"{self.path}, lines {self.first_line} to {self.last_line}"


class Scan(NamedTuple):
    """The passages of all text files at one time."""

    files: int
    passages: list[Passage]
    skipped: Counter[str]


class Corpus:
    """The text files of a root. Thread-safe."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._stamps: list[tuple[str, int, int]] = []
        self._scan = Scan(0, [], Counter())
        self._database = sqlite3.connect(":memory:", check_same_thread=False)  # the lock serializes all threads
        self._database.execute(_CREATE)
        self._lock = Lock()

    def scan(self) -> Scan:
        """Return the passages of the text files; the previous ones if no file changed. Blocking.

        Raise `OSError` if the root cannot be read.
        """
        with self._lock:
            entries = walk(self._root, self._root.path, Counter())
            stamps = [(one.path, one.status.st_mtime_ns, one.status.st_size) for one in entries if one.is_file]
            if stamps != self._stamps:
                skipped, passages, files = Counter[str](), list[Passage](), 0
                for entry, text in texts_below(self._root, self._root.path, skipped, max_bytes=MAX_FILE_BYTES):
                    if text is not None:
                        files += 1
                        passages += split_into_passages(entry.path, text)
                self._scan = Scan(files, passages, skipped)
                self._stamps = [] if skipped[UNREADABLE] else stamps  # the next scan tries unreadable files again
                self._database.execute("DELETE FROM chunk")
                self._database.executemany("INSERT INTO chunk VALUES (?, ?, ?, ?)", [one[:4] for one in passages])
            return self._scan

    def search_words(self, query: str, limit: int) -> list[Passage]:
        """Return the best passages of the last scan that contain a word of the query. Blocking.

        Raise `ToolFailure` if the query contains no word.
        """
        words = dict.fromkeys(re.findall(r"[^\W_]+", query.casefold()))
        if not words:
            raise ToolFailure(f"the query {query!r} contains no word to search for: describe in words what to look for")
        specific = [word for word in words if word not in _COMMON_WORDS]
        match = " OR ".join(f'"{word}"' for word in specific or words)
        with self._lock:
            rows = self._database.execute(_SEARCH, (match, limit)).fetchall()
        return [Passage(*row)._replace(score=float(f"{row[-1]:.4g}")) for row in rows]


def split_into_passages(path: str, text: str) -> Iterator[Passage]:
    """Cut a text into passages of at most 40 lines; a very long line counts as several."""
    pieces = [
        (number, line[start : start + _PIECE_CHARS])
        for number, line in enumerate(lines_of(text), 1)
        for start in range(0, max(len(line), 1), _PIECE_CHARS)
    ]
    for start in range(0, len(pieces), _PASSAGE_LINES):
        part = pieces[start : start + _PASSAGE_LINES]
        body = "\n".join(piece for _, piece in part)
        if body.strip():
            yield Passage(path, part[0][0], part[-1][0], body)


class EmbeddingIndex:
    """The embeddings of passages; an unchanged passage is embedded once."""

    def __init__(self, embeddings: "Embeddings") -> None:
        from langchain_core.vectorstores import InMemoryVectorStore

        self._store = InMemoryVectorStore(embeddings)
        self._lock = asyncio.Lock()

    async def search(self, passages: list[Passage], query: str, limit: int) -> list[Passage]:
        """Return the best passages, by cosine similarity to the query. Raise any error of the embeddings endpoint."""
        from langchain_core.documents import Document

        store, known = self._store, {str(one): one for one in passages}
        async with self._lock:  # without the lock, concurrent first queries would embed the same texts twice
            store.delete([*store.store.keys() - known.keys()])
            new = [Document(one.text, id=key) for key, one in known.items() if key not in store.store]
            for start in range(0, len(new), _BATCH_PASSAGES):
                await store.aadd_documents(new[start : start + _BATCH_PASSAGES])
            if missing := known.keys() - store.store.keys():
                raise ValueError(f"the endpoint returned no embeddings for {len(missing)} texts")
            vector = await store.embedding.aembed_query(query)
            hits = await asyncio.to_thread(store.similarity_search_with_score_by_vector, vector, limit)
        return [known[str(hit.id)]._replace(score=float(f"{score:.4g}")) for hit, score in hits]
