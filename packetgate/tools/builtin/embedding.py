"""The `embedding.query` tool: search by words, or by the nearest embeddings."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from packetgate.state.printing import counted, shorten
from packetgate.state.routing import Risk
from packetgate.tools.builtin.corpus import Corpus, Hit, LexicalIndex, Scan, TextFile, best_hits
from packetgate.tools.builtin.files import ToolFailure
from packetgate.tools.builtin.tool import BuiltinTool, ToolAnswer

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

_BATCH = 128
"""Chunks embedded at a time. Finished batches are kept when a later one fails."""


def embedding_tools(corpus: Corpus, by_words: LexicalIndex, embeddings: "Embeddings | None") -> tuple[BuiltinTool, ...]:
    """Return the tools that search the corpus."""
    by_meaning = EmbeddingIndex(embeddings) if embeddings is not None else None

    async def query(
        query: Annotated[str, Field(min_length=1, max_length=10_000, description="What to look for, in plain words.")],
        top_k: Annotated[int, Field(ge=1, le=50, description="Most hits to return.")] = 5,
    ) -> ToolAnswer:
        """Search the text files of the working folder by topic or meaning: the passages that answer a question best.

        Returns: these places with path, lines, score and text, how they were found (by words, or by meaning when
        embeddings are configured), and how many files were left out and why. Hidden, build and dependency folders are
        not searched, links are not followed.
        """
        if not query.strip():
            raise ToolFailure("the query is empty: say what to look for in words")
        scan = await asyncio.to_thread(corpus.scan)
        search, note, hits = "lexical", "", None
        if by_meaning is not None:
            try:
                hits = await by_meaning.search(scan.files, query, top_k)
                search = "embeddings"
            except Exception as error:  # noqa: BLE001  a wrong endpoint raises anything
                reason = shorten(f"{type(error).__name__}: {error}", 200)
                note = f"The embeddings failed ({reason}), so words were searched instead."
        if hits is None:
            hits = await asyncio.to_thread(by_words.search, scan.files, query, top_k)
        data = {
            "search": search,
            "note": note,
            "files_searched": len(scan.files),
            "left_out": dict(scan.left_out),
            "hits": [hit._asdict() for hit in hits],
        }
        return ToolAnswer(_text(query, search, note, scan, hits), data)

    # the embeddings endpoint receives the text of the files
    return (BuiltinTool(query, Risk.READ, open_world=embeddings is not None),)


def _text(query: str, search: str, note: str, scan: Scan, hits: list[Hit]) -> str:
    kind = "by words" if search == "lexical" else "by meaning, with embeddings"
    files = counted(len(scan.files), "file")
    if hits:
        head = f"{counted(len(hits), 'hit')} for {query!r} in {files}, {kind}."
    else:
        head = f"NO HITS: nothing in {files} matches {query!r}, searched {kind}. Try other words."
    left_out = ", ".join(f"{number:,} {why.replace('_', ' ')}" for why, number in scan.left_out.items() if number)
    head = " ".join(filter(None, [head, note, left_out and f"Not searched: {left_out}."]))
    places = [
        f"{hit.path}, lines {hit.first_line} to {hit.last_line} (score {hit.score:g}):\n{hit.text}" for hit in hits
    ]
    return "\n\n".join([head, *places])


class EmbeddingIndex:
    """An index of chunks by their embeddings."""

    def __init__(self, embeddings: "Embeddings") -> None:
        self._embeddings = embeddings
        self._embedded: dict[str, tuple[TextFile, Any]] = {}
        """Files by path, with an array that has a row for each of their chunks."""
        self._lock = asyncio.Lock()

    async def search(self, files: Mapping[str, TextFile], query: str, top_k: int) -> list[Hit]:
        """Return the best hits among `files`, by cosine similarity to the query. Raises errors of the endpoint."""
        async with self._lock:  # so that concurrent first queries do not pay for the same files twice
            await self._update(files)
            vector = await self._embeddings.aembed_query(query)
            return await asyncio.to_thread(self._nearest, vector, top_k)

    def _nearest(self, query: list[float], top_k: int) -> list[Hit]:
        import numpy as np

        chunks = [chunk for file, _ in self._embedded.values() for chunk in file.chunks]
        if not chunks:
            return []
        vector = np.asarray(query)
        vectors = np.concatenate([rows for _, rows in self._embedded.values() if len(rows)])
        scores = vectors @ vector / (np.linalg.norm(vectors, axis=1) * np.linalg.norm(vector))
        order = np.argsort(-scores, kind="stable")[: 4 * top_k]
        return best_hits(((chunks[at], float(scores[at])) for at in order), top_k)

    async def _update(self, files: Mapping[str, TextFile]) -> None:
        self._embedded = {path: one for path, one in self._embedded.items() if files.get(path) is one[0]}
        batch: dict[str, TextFile] = {}
        for path in [path for path in files if path not in self._embedded]:
            batch[path] = files[path]
            if sum(len(file.chunks) for file in batch.values()) >= _BATCH:
                await self._embed(batch)
                batch = {}
        await self._embed(batch)

    async def _embed(self, batch: Mapping[str, TextFile]) -> None:
        import numpy as np

        texts = [chunk.text for file in batch.values() for chunk in file.chunks]
        vectors = await self._embeddings.aembed_documents(texts) if texts else []
        if len(vectors) != len(texts):
            raise ValueError(f"{len(texts)} texts were sent and {len(vectors)} embeddings came back")
        rows = iter(vectors)
        for path, file in batch.items():
            self._embedded[path] = file, np.array([next(rows) for _ in file.chunks])
