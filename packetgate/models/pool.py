"""The models of both roles, loaded on first use."""

import asyncio
import hashlib
import json
import threading
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from packetgate.models.endpoint import LOCAL_SERVERS, Role, endpoint_of, without_credentials
from packetgate.models.llama.loading import check_gguf, check_installed, sample_digest
from packetgate.models.options import ANSWERING, ModelOptions, effective_options, parsed_options
from packetgate.models.spec import REFLEX, ModelSpec, parse_model
from packetgate.state.errors import ModelError
from packetgate.state.setting_values import SettingValue

if TYPE_CHECKING:
    from packetgate.models.llama.model import LlamaCppChat, LlamaCppModel
    from packetgate.models.model import Model
    from packetgate.models.openai.decisions import DecisionEndpoint


class _Files(NamedTuple):
    chats: "dict[Any, LlamaCppChat]"
    """The loaded GGUF files by path and options; roles share a file."""
    lock: threading.Lock


class ModelPool:
    """The two roles' models: `lite` for intent and selection, `prime` for review and answer."""

    def __init__(
        self,
        lite: str = "reflex",
        prime: str = "reflex",
        from_file: Mapping[str, Mapping[str, SettingValue]] | None = None,
    ) -> None:
        """Parse the model names; if only one is a real model, it has both roles.

        If prime is a decision model, the lite model writes the answers.

        Args:
            from_file: options by role, from `file_options`.

        Raises:
            ModelError: a model name is invalid, or a base URL in the environment is invalid.
            ConfigError: an option is unknown or its value is invalid.
        """
        specs: dict[Role, ModelSpec] = {"lite": parse_model(lite), "prime": parse_model(prime)}
        if specs["lite"].provider == "decisions":
            raise ModelError(
                f"the decision model {lite!r} only reviews calls and cannot be the lite model: "
                "set this model with --prime or PACKETGATE_PRIME"
            )
        tables, files = from_file or {}, _Files({}, threading.Lock())
        self._reviewer: _RoleModel | None = None
        if specs["prime"].provider == "decisions":
            options = effective_options(parsed_options("prime", specs["prime"], tables.get("prime", {})))
            self._reviewer, specs["prime"] = _RoleModel(specs["prime"], "prime", options, files), REFLEX
        real: list[Role] = [role for role, spec in specs.items() if spec.provider != "reflex"]
        self.given: dict[Role, dict[str, SettingValue]] = {}
        """By role, the configured options with the place where each is set."""
        self._models: dict[Role, _RoleModel] = {}
        for role in specs:
            player = real[0] if len(real) == 1 else role
            # with a reviewer, the options of prime belong to the reviewer
            named: Role = "lite" if self._reviewer else role
            self.given[role] = parsed_options(named, specs[player], tables.get(named, {}))
            self._models[role] = _RoleModel(specs[player], player, effective_options(self.given[role]), files)
        if self._models["lite"].key == self._models["prime"].key:
            self._models["prime"] = self._models["lite"]

    async def get(self, role: Role) -> "Model | None":
        """Return a role's model, loaded on first use; None for `reflex`."""
        return await asyncio.to_thread(self._models[role].load)

    @property
    def is_reflex(self) -> bool:
        """Whether both roles use `reflex`."""
        return all(one.spec == REFLEX for one in self._models.values())

    @property
    def has_reviewer(self) -> bool:
        """Whether a decision endpoint reviews calls."""
        return self._reviewer is not None

    async def reviewer(self) -> "DecisionEndpoint":
        """Return the decision endpoint.

        Raise ModelError if no decision endpoint is configured, or the endpoint has no key.
        """
        if self._reviewer is None:
            raise ModelError(
                "no decision endpoint is configured: set PACKETGATE_PRIME to decisions:NAME or systemone:NAME"
            )
        endpoint: DecisionEndpoint = await asyncio.to_thread(self._reviewer.load)
        return endpoint

    @property
    def role_groups(self) -> tuple[tuple[Role, ...], ...]:
        """The roles, grouped by the model that they share."""
        is_one = self._models["lite"] is self._models["prime"]
        return (("lite", "prime"),) if is_one else (("lite",), ("prime",))

    async def model_digest(self) -> str | None:
        """Return a digest of the model and its options if both roles share them; otherwise None."""
        alone = len(self.role_groups) == 1 and not self._reviewer and not self.is_reflex
        return await asyncio.to_thread(lambda: self._models["lite"].digest) if alone else None

    async def check(self, *roles: Role) -> None:
        """Check that the models of these roles (default: all) are available, without loading GGUF files.

        Raise ModelError if a model is not available; the message says what to do.
        """
        for one in dict.fromkeys(self._models[role] for role in roles or self._models):
            await one.check()
        if self._reviewer and (not roles or "prime" in roles):
            await self._reviewer.check()

    def describe(self, role: Role) -> str:
        """Return a description of the role's model."""
        reviewed = f"; {self._reviewer.description} reviews" if self._reviewer else ""
        return self._models[role].description + reviewed


class _RoleModel:
    def __init__(self, spec: ModelSpec, role: Role, options: ModelOptions, files: _Files) -> None:
        self.spec = spec
        self._options, self._files = options, files
        server = spec.server if spec.provider == "openai" else "openai"
        is_remote = spec.provider in {"openai", "decisions"}
        self._endpoint = endpoint_of(role, options.timeout, server) if is_remote else None
        self._lock = threading.Lock()  # threads of several event loops may load the model at once
        self._model: Any = None

    @property
    def key(self) -> Any:
        return self.spec.name, self._endpoint, self._options

    @property
    def description(self) -> str:
        if self._endpoint:
            return f"{self.spec.name} at {without_credentials(self._endpoint.base_url)}"
        return f"{Path(self.spec.name).name} in llama.cpp" if self.spec.name else "reflex (no model)"

    @cached_property
    def digest(self) -> str:
        where = [self._endpoint.base_url, self.spec.name] if self._endpoint else [sample_digest(self.spec.name)]
        asked = self._options.model_dump(include={*ANSWERING}, exclude_none=True)
        return hashlib.sha256(json.dumps([*where, asked], sort_keys=True).encode()).hexdigest()[:32]

    def load(self) -> Any:
        with self._lock:
            if self._model is None:
                self._model = self._new_model()
            return self._model

    async def check(self) -> None:
        if self._endpoint and self._endpoint.server in LOCAL_SERVERS:
            from packetgate.models.discovery import check_local_server

            await check_local_server(self.spec.name, self._endpoint)
        elif self._endpoint:
            model = await asyncio.to_thread(self.load)
            from packetgate.models.openai.connect import check_endpoint

            is_reviewer = self.spec.provider == "decisions"
            chat, client = (model, model.client) if is_reviewer else (model.chat, model.chat.root_async_client)
            await check_endpoint(chat, client)
        elif self.spec.provider == "llamacpp":
            await asyncio.to_thread(check_gguf, self.spec.name)
            await asyncio.to_thread(check_installed)

    def _new_model(self) -> Any:
        if self._endpoint and self.spec.provider == "decisions":
            from packetgate.models.openai.decisions import DecisionEndpoint

            headers = self._options.headers or {}
            return DecisionEndpoint.at(self._endpoint, self.spec.name, self.spec.server, headers)
        if self._endpoint:
            from packetgate.models.openai.connect import connect
            from packetgate.models.openai.model import OpenAICompatible

            chat = connect(self.spec.name, self._endpoint, self._options)
            return OpenAICompatible(chat, self._options, is_openai=self._endpoint.is_openai)
        if self.spec.provider == "llamacpp":
            return self._local_model()
        return None

    def _local_model(self) -> "LlamaCppModel":
        check_installed()
        check_gguf(self.spec.name)
        from packetgate.models.llama.engine import LlamaEngine
        from packetgate.models.llama.model import LlamaCppChat, LlamaCppModel

        loading = self._options.loading
        key = (self.spec.name, *loading.items())
        with self._files.lock:
            if key not in self._files.chats:
                self._files.chats[key] = LlamaCppChat(LlamaEngine(self.spec.name, loading))
            return LlamaCppModel(self._files.chats[key], self._options)
