"""The `embedding` server: `query`."""

import asyncio
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from state.routing import Risk
from tools.builtin.corpus import Corpus
from tools.builtin.failures import EmbeddingsError, ToolFailure
from tools.builtin.hits import SearchResult
from tools.builtin.lexical import LexicalIndex
from tools.builtin.root import Root
from tools.builtin.tool import Answer, BuiltinTool

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    from tools.builtin.semantic import EmbeddingIndex


class FileSearch:
    """Searches the root's files: by meaning where embeddings are given and work, else by words."""

    def __init__(self, root: Root, embeddings: "Embeddings | None") -> None:
        self._corpus = Corpus(root)
        self._lexical = LexicalIndex()
        self._semantic = _semantic(embeddings)

    async def search(self, query: str, top_k: int) -> SearchResult:
        """Return the best hits, and how they were found.

        Raises:
            ToolFailure: the root cannot be read, or the query is empty or, searched by words, holds none.
        """
        if not query.strip():
            raise ToolFailure("the query is empty: say what to look for in words")
        scan = await asyncio.to_thread(self._corpus.scan)
        found = {"files_searched": len(scan.files), "left_out": dict(scan.left_out)}
        note = ""
        if self._semantic is not None:
            try:
                hits = await self._semantic.search(scan.files, query, top_k)
                return SearchResult(search="embeddings", hits=hits, **found)
            except EmbeddingsError as error:
                note = f"The embeddings failed ({error}), so words were searched instead."
        hits = await asyncio.to_thread(self._lexical.search, scan.files, query, top_k)
        return SearchResult(search="lexical", note=note, hits=hits, **found)


def embedding_tools(root: Root, embeddings: "Embeddings | None") -> tuple[BuiltinTool, ...]:
    """Return the tools, confined to `root`."""
    files = FileSearch(root, embeddings)

    async def query(
        query: Annotated[str, Field(min_length=1, max_length=10_000, description="What to look for, in plain words.")],
        top_k: Annotated[int, Field(ge=1, le=50, description="Most hits to return.")] = 5,
    ) -> Answer:
        """Search the text files of the working folder for what they say.

        Returns the best places with path, lines, score and text, how they were found (by words, or by meaning when
        embeddings are configured), and how many files were left out and why. Hidden, build and dependency folders are
        not searched, links are not followed.
        """
        result = await files.search(query, top_k)
        return Answer(result.as_text(query), result.model_dump(mode="json"))

    # With embeddings, the files' text goes to whoever computes them.
    return (BuiltinTool(query, Risk.READ, open_world=embeddings is not None),)


def _semantic(embeddings: "Embeddings | None") -> "EmbeddingIndex | None":
    if embeddings is None:
        return None
    from tools.builtin.semantic import EmbeddingIndex

    return EmbeddingIndex(embeddings)
