"""The `embedding.query` tool."""

import asyncio
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from packetgate.state.printing import counted
from packetgate.state.routing import Risk
from packetgate.tools.builtin.corpus import Corpus, EmbeddingsError, Hit, LexicalIndex, Scan
from packetgate.tools.builtin.files import ToolFailure
from packetgate.tools.builtin.tool import Answer, BuiltinTool

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings


def embedding_tools(corpus: Corpus, by_words: LexicalIndex, embeddings: "Embeddings | None") -> tuple[BuiltinTool, ...]:
    """Return the tools that search the corpus."""
    by_meaning = None
    if embeddings is not None:
        from packetgate.tools.builtin.semantic import EmbeddingIndex

        by_meaning = EmbeddingIndex(embeddings)

    async def query(
        query: Annotated[str, Field(min_length=1, max_length=10_000, description="What to look for, in plain words.")],
        top_k: Annotated[int, Field(ge=1, le=50, description="Most hits to return.")] = 5,
    ) -> Answer:
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
            except EmbeddingsError as error:
                note = f"The embeddings failed ({error}), so words were searched instead."
        if hits is None:
            hits = await asyncio.to_thread(by_words.search, scan.files, query, top_k)
        found = {
            "search": search,
            "note": note,
            "files_searched": len(scan.files),
            "left_out": dict(scan.left_out),
            "hits": [hit._asdict() for hit in hits],
        }
        return Answer(_text(query, search, note, scan, hits), found)

    # The embeddings endpoint receives the text of the files.
    return (BuiltinTool(query, Risk.READ, open_world=embeddings is not None),)


def _text(query: str, search: str, note: str, scan: Scan, hits: list[Hit]) -> str:
    kind = "by words" if search == "lexical" else "by meaning, with embeddings"
    files = counted(len(scan.files), "file")
    if hits:
        head = f"{counted(len(hits), 'hit')} for {query!r} in {files}, {kind}."
    elif scan.files:
        head = f"NO HITS: nothing in {files} matches {query!r}, searched {kind}. Try other words."
    else:
        head = f"NO HITS: there was no text file to search for {query!r}."
    left_out = ", ".join(f"{number:,} {why.replace('_', ' ')}" for why, number in scan.left_out.items() if number)
    about = [head, note, left_out and f"Not searched: {left_out}."]
    places = [
        f"{hit.path}, lines {hit.first_line} to {hit.last_line} (score {hit.score:g}):\n{hit.text}" for hit in hits
    ]
    return "\n\n".join([" ".join(filter(None, about)), *places])
