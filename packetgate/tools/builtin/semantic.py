"""Search by meaning: find the chunks whose embeddings are nearest to that of the query."""

import asyncio
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from langchain_core.embeddings import Embeddings

from packetgate.tools.builtin.corpus import EmbeddingsError, Hit, TextFile, best

_BATCH = 128
"""Chunks embedded at a time. Finished batches are kept when a later one fails."""
_REASON_CHARS = 200

_Vectors = npt.NDArray[np.float64]


class EmbeddingIndex:
    """An index of chunks by their embeddings."""

    def __init__(self, embeddings: Embeddings) -> None:
        self._embeddings = embeddings
        self._embedded: dict[str, tuple[TextFile, _Vectors]] = {}
        """Files by path, with a row for each of their chunks."""
        self._lock = asyncio.Lock()

    async def search(self, files: Mapping[str, TextFile], query: str, top_k: int) -> list[Hit]:
        """Return the best hits among `files`, by cosine similarity to the query.

        Raises:
            EmbeddingsError: the embeddings endpoint failed.
        """
        async with self._lock:  # so that concurrent first queries do not pay for the same files twice
            try:
                await self._update(files)
                vector = np.asarray(await self._embeddings.aembed_query(query))
                return await asyncio.to_thread(self._nearest, vector, top_k)
            except _failures() as error:
                reason = " ".join(f"{type(error).__name__}: {error}".split())
                raise EmbeddingsError(reason[:_REASON_CHARS]) from error

    def _nearest(self, vector: _Vectors, top_k: int) -> list[Hit]:
        chunks = [chunk for file, _ in self._embedded.values() for chunk in file.chunks]
        if not chunks:
            return []
        vectors = np.concatenate([rows for _, rows in self._embedded.values() if len(rows)])
        scores = vectors @ vector / (np.linalg.norm(vectors, axis=1) * np.linalg.norm(vector))
        order = np.argsort(-scores, kind="stable")[: 4 * top_k]
        return best(((chunks[at], float(scores[at])) for at in order), top_k)

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
        texts = [chunk.text for file in batch.values() for chunk in file.chunks]
        vectors = await self._embeddings.aembed_documents(texts) if texts else []
        if len(vectors) != len(texts):
            raise ValueError(f"{len(texts)} texts were sent and {len(vectors)} embeddings came back")
        rows = iter(vectors)
        for path, file in batch.items():
            self._embedded[path] = file, np.array([next(rows) for _ in file.chunks])


def _failures() -> tuple[type[Exception], ...]:
    import httpx
    from openai import OpenAIError

    # an endpoint that is no OpenAI-compatible one gets as far as the SDK's own attribute and key errors
    return (OpenAIError, httpx.HTTPError, OSError, ImportError, ValueError, TypeError, LookupError, AttributeError)
