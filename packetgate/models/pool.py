"""The model pool: the models of both roles, loaded on first use."""

import asyncio
import hashlib
import json
import threading
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packetgate.models.endpoint import LOCAL, Role, endpoint_of, shown
from packetgate.models.llama.loading import check_gguf, check_installed, sample_digest
from packetgate.models.options import ANSWERING, ModelOptions, given_options, options_of
from packetgate.models.spec import REFLEX, ModelSpec, parse_model
from packetgate.state.errors import ModelError
from packetgate.state.setting_values import SettingValue

if TYPE_CHECKING:
    from packetgate.models.llama.model import LlamaCppChat
    from packetgate.models.model import Model
    from packetgate.models.openai.decisions import DecisionEndpoint


class ModelPool:
    """The two roles' models: `lite` for intent and selection, `prime` for review and answer."""

    def __init__(
        self,
        lite: str = "reflex",
        prime: str = "reflex",
        from_file: Mapping[str, Mapping[str, SettingValue]] | None = None,
    ) -> None:
        """Read the model strings; a single model plays both roles.

        With `decisions:NAME` or `systemone:NAME` as prime, the lite model answers.

        Args:
            from_file: options by role, from `file_options`.

        Raises:
            ModelError: a string names no model, or a base URL in the environment is invalid.
            ConfigError: an option is unknown or its value is invalid.
        """
        given: dict[Role, ModelSpec] = {"lite": parse_model(lite), "prime": parse_model(prime)}
        if given["lite"].provider == "decisions":
            raise ModelError(f"{lite!r} answers questions with a probability, and nothing else: it can only be prime")
        self._decisions: _Decisions | None = None
        if given["prime"].provider == "decisions":
            asked = options_of(given_options("prime", given["prime"], (from_file or {}).get("prime", {})))
            self._decisions, given["prime"] = _Decisions(given["prime"], asked), REFLEX
        real: list[Role] = [role for role, spec in given.items() if spec.provider != "reflex"]
        self.given: dict[Role, dict[str, SettingValue]] = {}
        """By role, the given options and where each was set."""
        self._parts: dict[Role, _Part] = {}
        files: dict[Any, _File] = {}
        for role in given:
            player = real[0] if len(real) == 1 else role
            spec = given[player]
            named: Role = "lite" if self._decisions else role  # those of prime are its reviewer's
            self.given[role] = given_options(named, spec, (from_file or {}).get(named, {}))
            options = options_of(self.given[role])
            file = files.setdefault((spec.name, *options.loading.items()), _File(spec.name, options.loading))
            self._parts[role] = _Part(spec, player, options, file, self.given[role])
        one, other = self._parts["lite"], self._parts["prime"]
        if (one.spec.name, one.endpoint, one.options) == (other.spec.name, other.endpoint, other.options):
            self._parts["prime"] = one

    async def get(self, role: Role) -> "Model | None":
        """Return a role's model, loaded on first use; None for the reflex."""
        return await asyncio.to_thread(self._parts[role].load)

    @property
    def is_reflex(self) -> bool:
        """Whether no role has a language model."""
        return all(part.spec == REFLEX for part in self._parts.values())

    @property
    def has_reviewer(self) -> bool:
        """Whether a decision endpoint reviews."""
        return self._decisions is not None

    async def reviewer(self) -> "DecisionEndpoint":
        """Return the decision endpoint.

        Raises:
            ModelError: there is none, or it has no key.
        """
        if self._decisions is None:
            raise ModelError("no decision endpoint reviews: set PACKETGATE_PRIME to decisions:NAME or systemone:NAME")
        return await asyncio.to_thread(self._decisions.load)

    @property
    def players(self) -> tuple[tuple[Role, ...], ...]:
        """The roles, grouped by model."""
        return (("lite", "prime"),) if self._parts["lite"] is self._parts["prime"] else (("lite",), ("prime",))

    async def known_as(self) -> str | None:
        """Return a digest of the one model that plays both roles and its options; None if there is none."""
        alone = len(self.players) == 1 and not self._decisions and not self.is_reflex
        return await asyncio.to_thread(lambda: self._parts["lite"].known_as) if alone else None

    async def check(self, *roles: Role) -> None:
        """Check that the models of these or all roles are available, without loading GGUF files.

        Raises:
            ModelError: one is not; the message says what to do.
        """
        for part in dict.fromkeys(self._parts[role] for role in roles or self._parts):
            await part.check()
        if self._decisions and (not roles or "prime" in roles):
            await self._decisions.check()

    def describe(self, role: Role) -> str:
        """Return a description of what plays the role."""
        reviewed = f"; {self._decisions.description} reviews" if self._decisions else ""
        return self._parts[role].description + reviewed


class _Decisions:
    def __init__(self, spec: ModelSpec, options: ModelOptions) -> None:
        self._spec = spec
        self._headers = options.headers or {}
        self._endpoint = endpoint_of("prime", options.timeout)
        self._lock = threading.Lock()
        self._made: DecisionEndpoint | None = None

    @property
    def description(self) -> str:
        return f"{self._spec.name} at {shown(self._endpoint.base_url)}"

    def load(self) -> "DecisionEndpoint":
        with self._lock:
            if self._made is None:
                from packetgate.models.openai.decisions import DecisionEndpoint

                self._made = DecisionEndpoint.at(self._endpoint, self._spec.name, self._spec.server, self._headers)
            return self._made

    async def check(self) -> None:
        endpoint = await asyncio.to_thread(self.load)
        from packetgate.models.openai.connect import check_endpoint

        await check_endpoint(endpoint, endpoint.client)


class _File:
    def __init__(self, path: str, loading: dict[str, int]) -> None:
        self._path, self._loading = path, loading
        self._lock = threading.Lock()
        self._chat: LlamaCppChat | None = None

    def load(self) -> "LlamaCppChat":
        from packetgate.models.llama.engine import LlamaEngine
        from packetgate.models.llama.model import LlamaCppChat
        from packetgate.models.llama.trial import try_file

        with self._lock:
            if self._chat is None:
                check_installed()
                check_gguf(self._path)
                self._chat = LlamaCppChat(LlamaEngine(self._path, try_file(self._path) | self._loading))
            return self._chat


def _check_file(path: str) -> None:
    try:
        check_gguf(path)
    except ModelError as error:
        folder = Path(path) if Path(path).is_dir() else Path(path).parent
        others = sorted(one.name for one in folder.glob("*.gguf") if one != Path(path))
        near = get_close_matches(Path(path).name, others, n=1, cutoff=0.0)
        if not near:
            raise
        raise ModelError(f"{error}; or write llamacpp:{folder / near[0]}") from error


class _Part:
    def __init__(
        self, spec: ModelSpec, role: Role, options: ModelOptions, file: _File, given: Mapping[str, SettingValue]
    ) -> None:
        self.spec, self.options, self._file = spec, options, file
        self._places = {name: one.where for name, one in given.items()}
        self.endpoint = endpoint_of(role, options.timeout, spec.server) if spec.provider == "openai" else None
        self._lock = threading.Lock()  # loading happens in threads, for any number of event loops
        self._model: Model | None = None

    @property
    def description(self) -> str:
        if self.endpoint:
            return f"{self.spec.name} at {shown(self.endpoint.base_url)}"
        return f"{Path(self.spec.name).name} in llama.cpp" if self.spec.name else "reflex (no model)"

    @cached_property
    def known_as(self) -> str:
        where = [self.endpoint.base_url, self.spec.name] if self.endpoint else [sample_digest(self.spec.name)]
        asked = self.options.model_dump(include={*ANSWERING}, exclude_none=True)
        return hashlib.sha256(json.dumps([*where, asked], sort_keys=True).encode()).hexdigest()[:32]

    def load(self) -> "Model | None":
        with self._lock:
            if self._model is None:
                self._model = self._new_model()
            return self._model

    async def check(self) -> None:
        if self.endpoint and self.endpoint.server in LOCAL:
            from packetgate.models.discovery import check_served

            await check_served(self.spec.name, self.endpoint)
        elif self.endpoint:
            model: Any = await asyncio.to_thread(self.load)
            from packetgate.models.openai.connect import check_endpoint

            await check_endpoint(model.chat, model.chat.root_async_client)
        elif self.spec.provider == "llamacpp":
            await asyncio.to_thread(_check_file, self.spec.name)
            await asyncio.to_thread(check_installed)

    def _new_model(self) -> "Model | None":
        if self.endpoint:
            from packetgate.models.openai.connect import connect
            from packetgate.models.openai.model import OpenAICompatible

            chat = connect(self.spec.name, self.endpoint, self.options, self._places)
            return OpenAICompatible(chat, self.options, is_openai=self.endpoint.is_openai)
        if self.spec.provider == "llamacpp":
            from packetgate.models.llama.model import LlamaCppModel

            return LlamaCppModel(self._file.load(), self.options)
        return None
