"""Embedding models, for search over files."""

import os
from typing import TYPE_CHECKING

from models.spec import parse_model
from state.errors import ModelError

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

TIMEOUT_S = 30.0


def open_embeddings(name: str) -> "Embeddings":
    """Return the embedding model `openai:NAME`, of any OpenAI-compatible server.

    The server is `PACKETGATE_EMBEDDINGS_BASE_URL`, else `OPENAI_BASE_URL`; the key likewise `..._API_KEY`, and a
    server of its own never gets OpenAI's.

    Raises:
        ModelError: the string names no embedding model.
    """
    spec = parse_model(name)
    if spec.provider != "openai":
        raise ModelError(f"PACKETGATE_EMBEDDINGS: {name!r} is no embedding model: use openai:NAME")
    from langchain_openai import OpenAIEmbeddings
    from pydantic import SecretStr

    own = os.environ.get("PACKETGATE_EMBEDDINGS_BASE_URL")
    base_url = own or os.environ.get("OPENAI_BASE_URL")
    key = os.environ.get("PACKETGATE_EMBEDDINGS_API_KEY") or (None if own else os.environ.get("OPENAI_API_KEY"))
    if not key and not base_url:
        raise ModelError("PACKETGATE_EMBEDDINGS: set OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own")
    return OpenAIEmbeddings(
        model=spec.name,
        openai_api_base=base_url,
        openai_api_key=SecretStr(key or "none"),
        request_timeout=TIMEOUT_S,
        check_embedding_ctx_length=False,  # other servers take text, not OpenAI's token ids
    )
