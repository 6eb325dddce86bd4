"""Search by meaning: embeddings in LangChain's in-memory vector store."""

import asyncio
from collections.abc import Mapping

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore

from packetgate.tools.builtin.corpus import Chunk, EmbeddingsError, Hit, TextFile, best

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
            await self._store.adelete([document.id or "" for document in _documents(self._files.pop(path))])
        batch: dict[str, TextFile] = {}
        for path in [path for path in files if path not in self._files]:
            batch[path] = files[path]
            if sum(len(file.chunks) for file in batch.values()) >= _BATCH:
                await self._embed(batch)
                batch = {}
        await self._embed(batch)

    async def _embed(self, batch: Mapping[str, TextFile]) -> None:
        documents = [document for file in batch.values() for document in _documents(file)]
        if documents:
            added = await self._store.aadd_documents(documents)
            if len(added) != len(documents):
                raise ValueError(f"{len(documents)} texts were sent and {len(added)} embeddings came back")
        self._files.update(batch)


def _failures() -> tuple[type[Exception], ...]:
    import httpx
    from openai import OpenAIError

    return (OpenAIError, httpx.HTTPError, OSError, ImportError, ValueError, TypeError, LookupError, AttributeError)


def _documents(file: TextFile) -> list[Document]:
    return [
        Document(
            id=f"{chunk.path}#{number}",  # numbered, because several chunks may come from one long line
            page_content=chunk.text,
            metadata={"path": chunk.path, "first_line": chunk.first_line, "last_line": chunk.last_line},
        )
        for number, chunk in enumerate(file.chunks)
    ]
