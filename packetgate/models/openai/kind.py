"""Models of OpenAI-compatible servers and decision endpoints, by the prefix of their names."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from packetgate.models.kinds import FoundModels, ModelKind, ModelSetup, parse_model
from packetgate.models.openai.servers import LLAMA_SERVER, OPENAI, PROVIDER_KEYS, SERVERS, Endpoint, endpoint_of
from packetgate.models.options import COMMON, ModelOptions, Role
from packetgate.plugins import Plugin
from packetgate.state.errors import ModelError
from packetgate.state.printing import without_credentials

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    from packetgate.models.openai.compatible import OpenAICompatible
    from packetgate.models.openai.decision_endpoint import DecisionEndpoint


class _AtEndpoint(ModelKind):
    def identity(self, setup: ModelSetup) -> Sequence[str]:
        """Return the base URL and the name."""
        return setup.place.base_url, setup.name

    def _setup(self, prefix: str, name: str, endpoint: Endpoint, options: ModelOptions) -> ModelSetup:
        described = f"{name} at {without_credentials(endpoint.base_url)}"
        return ModelSetup(prefix, name, described, options, endpoint, is_hosted=prefix in PROVIDER_KEYS)


class ChatKind(_AtEndpoint):
    """Chat models of OpenAI-compatible servers; the prefix sets the base URL."""

    forms = ("ollama:NAME", "lmstudio:NAME", "openai:NAME")
    prefixes = (OPENAI, *SERVERS)
    takes = (*COMMON, "native_tools", "vision", "reasoning_effort", "timeout", "extra_body")

    def parse(self, prefix: str, name: str, role: Role, options: ModelOptions) -> ModelSetup:
        """Return the setup at the role's endpoint, or at the server of the prefix."""
        return self._setup(prefix, name, endpoint_of(role, options.timeout, prefix), options)

    async def check(self, setup: ModelSetup) -> None:
        """Check that the endpoint answers, and that a local server has the model."""
        from packetgate.models.openai.local_servers import check_server

        model = await asyncio.to_thread(self.open, setup)
        await check_server(model.chat, model.chat.root_async_client, setup.name, setup.place)

    def open(self, setup: ModelSetup) -> "OpenAICompatible":
        """Return the model, without sending a request."""
        from packetgate.models.openai.compatible import OpenAICompatible
        from packetgate.models.openai.connect import connect

        chat = connect(setup.name, setup.place, setup.options)
        return OpenAICompatible(chat, setup.options, is_openai=setup.place.is_openai)

    async def find(self, folders: Sequence[Path]) -> FoundModels:
        """Return the models of local servers, and the providers whose keys are set."""
        from packetgate.models.openai.local_servers import find_served_models

        found = await find_served_models()
        keys = ((name, variable) for name, variable in PROVIDER_KEYS.items() if os.environ.get(variable, "").strip())
        return FoundModels(found.offers, tuple(keys), found.notes)


class DecisionKind(_AtEndpoint):
    """Decision endpoints; the prefix is the format of requests."""

    forms = ("decisions:NAME", "systemone:NAME")
    prefixes = ("decisions", "systemone")
    takes = ("timeout",)
    only_reviews = True

    def parse(self, prefix: str, name: str, role: Role, options: ModelOptions) -> ModelSetup:
        """Return the setup at the role's endpoint; for System One, at llama.cpp's server if no variable names one."""
        is_named = prefix == "decisions" or os.environ.get("OPENAI_BASE_URL", "").strip()
        endpoint = endpoint_of(role, options.timeout, OPENAI if is_named else LLAMA_SERVER)
        return self._setup(prefix, name, endpoint, options)

    async def check(self, setup: ModelSetup) -> None:
        """Check that the endpoint answers."""
        from packetgate.models.openai.local_servers import check_server

        model = await asyncio.to_thread(self.open, setup)
        await check_server(model, model.client, setup.name, setup.place)

    def open(self, setup: ModelSetup) -> "DecisionEndpoint":
        """Return the endpoint, without sending a request."""
        from packetgate.models.openai.decision_endpoint import DecisionEndpoint

        return DecisionEndpoint.at(setup)

    async def find(self, folders: Sequence[Path]) -> FoundModels:
        """Return the decision models of a local server."""
        from packetgate.models.openai.local_servers import find_decision_models

        return await find_decision_models()


CHAT = ChatKind()
PLUGIN = Plugin("openai", model_kinds=[CHAT, DecisionKind()])


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
