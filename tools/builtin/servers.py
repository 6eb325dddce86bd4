"""Where the built-in servers come from; FastMCP loads only when they are asked for."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fastmcp import FastMCP
    from langchain_core.embeddings import Embeddings

    from tools.builtin.semantic import EmbeddingIndex


def builtin_servers(root: Path, embeddings: "Embeddings | None" = None) -> "dict[str, FastMCP[Any]]":
    """Return the built-in servers by name, confined to `root`. Touches no disk until a tool is called.

    Without `embeddings`, `embedding.query` searches by words.
    """
    from tools.builtin.ai import ai_server
    from tools.builtin.embedding import embedding_server
    from tools.builtin.root import Root

    confined = Root(root)
    return {"ai": ai_server(confined), "embedding": embedding_server(confined, _semantic(embeddings))}


def _semantic(embeddings: "Embeddings | None") -> "EmbeddingIndex | None":
    if embeddings is None:
        return None
    from tools.builtin.semantic import EmbeddingIndex

    return EmbeddingIndex(embeddings)
