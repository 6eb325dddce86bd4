"""Search by meaning: embeddings in LangChain's in-memory vector store."""

import asyncio
from collections.abc import Mapping

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore

from tools.builtin.corpus import Chunk, TextFile
from tools.builtin.failures import EmbeddingsError
from tools.builtin.hits import Hit, best

_BATCH = 128
"""Chunks embedded at a time; what is done stays done when a later batch fails."""
_REASON_CHARS = 200


class EmbeddingIndex:
    """Chunks by their embeddings."""

    def __init__(self, embeddings: Embeddings) -> None:
        self._embeddings = embeddings
        self._store = InMemoryVectorStore(embeddings)
        self._files: dict[str, TextFile] = {}
        self._lock = asyncio.Lock()

    async def search(self, files: Mapping[str, TextFile], query: str, top_k: int) -> list[Hit]:
        """Return the best hits among `files`.

        Raises:
            EmbeddingsError: the embeddings cannot be had.
        """
        async with self._lock:  # so that concurrent first queries do not pay for the same files twice
            try:
                await self._update(files)
                vector = await self._embeddings.aembed_query(query)
                search = self._store.similarity_search_with_score_by_vector
                found = await asyncio.to_thread(search, vector, 4 * top_k)
            except _failures() as error:
                reason = " ".join(f"{type(error).__name__}: {error}".split())
                raise EmbeddingsError(reason[:_REASON_CHARS]) from error
        return best(
            ((Chunk(**document.metadata, text=document.page_content), score) for document, score in found), top_k
        )

    async def _update(self, files: Mapping[str, TextFile]) -> None:
        for path in [path for path, file in self._files.items() if files.get(path) is not file]:
            await self._store.adelete([_id(chunk) for chunk in self._files.pop(path).chunks])
        batch: dict[str, TextFile] = {}
        for path in [path for path in files if path not in self._files]:
            batch[path] = files[path]
            if sum(len(file.chunks) for file in batch.values()) >= _BATCH:
                await self._embed(batch)
                batch = {}
        await self._embed(batch)

    async def _embed(self, batch: Mapping[str, TextFile]) -> None:
        chunks = [chunk for file in batch.values() for chunk in file.chunks]
        if chunks:
            added = await self._store.aadd_documents([_document(chunk) for chunk in chunks])
            if len(added) != len(chunks):
                raise ValueError(f"{len(chunks)} texts were sent and {len(added)} embeddings came back")
        self._files.update(batch)


def _failures() -> tuple[type[Exception], ...]:
    """Return what embeddings raise when their endpoint is down, refuses, or answers with something else.

    An endpoint that is no OpenAI-compatible one gets as far as the SDK's own attribute and key errors.
    """
    import httpx  # noqa: PLC0415 - needed only once something failed
    from openai import OpenAIError  # noqa: PLC0415

    return (OpenAIError, httpx.HTTPError, OSError, ImportError, ValueError, TypeError, LookupError, AttributeError)


def _id(chunk: Chunk) -> str:
    return f"{chunk.path}:{chunk.first_line}"


def _document(chunk: Chunk) -> Document:
    place = {"path": chunk.path, "first_line": chunk.first_line, "last_line": chunk.last_line}
    return Document(id=_id(chunk), page_content=chunk.text, metadata=place)
