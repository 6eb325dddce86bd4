"""Embedding models for file search and tool comparison."""

from typing import TYPE_CHECKING

from packetgate.models.kinds import parse_model
from packetgate.models.openai.kind import CHAT
from packetgate.models.openai.servers import endpoint_of
from packetgate.state.errors import ModelError

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings


def open_embeddings(name: str, setting: str = "PACKETGATE_EMBEDDINGS") -> "Embeddings":
    """Return the embedding model `openai:NAME`, of any OpenAI-compatible server.

    Raise ModelError if the string names no embedding model, or OpenAI has no key, and ConfigError if the timeout in
    the environment is invalid.
    """
    spec = parse_model(name)
    if spec.kind is not CHAT:
        raise ModelError(f"{setting}: {name!r} is not an embedding model: use openai:NAME")
    from langchain_openai import OpenAIEmbeddings

    endpoint = endpoint_of("embeddings", server=spec.prefix)
    return OpenAIEmbeddings(
        model=spec.name,
        openai_api_base=endpoint.base_url,
        openai_api_key=endpoint.key_for(spec.name),
        request_timeout=endpoint.timeout,
        check_embedding_ctx_length=False,  # other servers take text, not OpenAI's token ids
    )
