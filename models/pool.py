"""The model pool: which model plays which role, loaded when first needed."""

import asyncio
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from models.endpoint import Role, endpoint_of, shown
from models.llama.loading import check_gguf, check_installed
from models.options import ModelOptions, given_options, options_of
from models.spec import ModelSpec, parse_model
from state.given import Given

if TYPE_CHECKING:
    from models.llama.model import LlamaCppChat
    from models.model import Model


class ModelPool:
    """The two roles' models: `lite` for intent and selection, `prime` for review and answer."""

    def __init__(
        self,
        lite: str = "reflex",
        prime: str = "reflex",
        from_file: Mapping[str, Mapping[str, Given]] | None = None,
    ) -> None:
        """Read the model strings; where only one names a model, it plays both roles.

        Args:
            from_file: options by role, as `file_options` reads them.

        Raises:
            ModelError: a string names no model, or a base URL in the environment is none.
            ConfigError: an option is none, or does not take its value.
        """
        given: dict[Role, ModelSpec] = {"lite": parse_model(lite), "prime": parse_model(prime)}
        real: list[Role] = [role for role, spec in given.items() if spec.provider != "reflex"]
        self.given: dict[Role, dict[str, Given]] = {}
        """By role, the options that somebody gave, and where."""
        self._parts: dict[Role, _Part] = {}
        files: dict[Any, _File] = {}
        for role in given:
            player = real[0] if len(real) == 1 else role
            spec = given[player]
            self.given[role] = given_options(role, spec, (from_file or {}).get(role, {}))
            options = options_of(self.given[role])
            file = files.setdefault((spec.name, *options.loading.items()), _File(spec.name, options.loading))
            self._parts[role] = _Part(spec, player, options, file)
        one, other = self._parts["lite"], self._parts["prime"]
        if (one.spec.name, one.endpoint, one.options) == (other.spec.name, other.endpoint, other.options):
            self._parts["prime"] = one

    async def get(self, role: Role) -> "Model | None":
        """Return a role's model, loading it the first time; None is the reflex, which needs no model.

        Raises:
            ModelError: the model cannot be loaded.
        """
        return await asyncio.to_thread(self._parts[role].load)

    @property
    def players(self) -> tuple[tuple[Role, ...], ...]:
        """The roles, those together that one model plays."""
        return (("lite", "prime"),) if self._parts["lite"] is self._parts["prime"] else (("lite",), ("prime",))

    async def check(self, *roles: Role) -> None:
        """Make sure that these roles' models, or all, are there, without loading GGUF files: a few seconds at most.

        Raises:
            ModelError: one is not; the message says which, and what to do.
        """
        for part in dict.fromkeys(self._parts[role] for role in roles or self._parts):
            await part.check()

    def describe(self, role: Role) -> str:
        """Return what plays the role, for display."""
        return self._parts[role].description


class _File:
    """A GGUF file, loaded once for all roles that load it alike."""

    def __init__(self, path: str, loading: dict[str, int]) -> None:
        self._path, self._loading = path, loading
        self._lock = threading.Lock()
        self._chat: LlamaCppChat | None = None

    def load(self) -> "LlamaCppChat":
        from models.llama.engine import LlamaEngine
        from models.llama.model import LlamaCppChat

        with self._lock:
            self._chat = self._chat or LlamaCppChat(LlamaEngine(self._path, self._loading))
            return self._chat


class _Part:
    """A model that plays one role or both."""

    def __init__(self, spec: ModelSpec, role: Role, options: ModelOptions, file: _File) -> None:
        self.spec, self.options, self._file = spec, options, file
        self.endpoint = endpoint_of(role, options.timeout) if spec.provider == "openai" else None
        self._lock = threading.Lock()  # loading happens in threads, for any number of event loops
        self._model: Model | None = None

    @property
    def description(self) -> str:
        if self.endpoint:
            return f"{self.spec.name} at {shown(self.endpoint.base_url)}"
        return f"{Path(self.spec.name).name} in llama.cpp" if self.spec.name else "reflex (no model)"

    def load(self) -> "Model | None":
        with self._lock:
            if self._model is None:
                self._model = self._new_model()
            return self._model

    async def check(self) -> None:
        if self.endpoint:
            model: Any = await asyncio.to_thread(self.load)
            from models.openai.connect import check_endpoint

            await check_endpoint(model.chat, self.endpoint)
        elif self.spec.provider == "llamacpp":
            await asyncio.to_thread(check_gguf, self.spec.name)
            await asyncio.to_thread(check_installed)

    def _new_model(self) -> "Model | None":
        if self.endpoint:
            from models.openai.connect import connect
            from models.openai.model import OpenAICompatible

            chat = connect(self.spec.name, self.endpoint, self.options)
            return OpenAICompatible(chat, self.options, is_openai=self.endpoint.is_openai)
        if self.spec.provider == "llamacpp":
            from models.llama.model import LlamaCppModel

            return LlamaCppModel(self._file.load(), self.options)
        return None
