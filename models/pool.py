"""The model pool: which model plays which role, loaded when first needed."""

import asyncio
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from models.endpoint import Endpoint, Role, endpoint_of, shown
from models.llama.loading import check_gguf, check_installed
from models.spec import ModelSpec, parse_model

if TYPE_CHECKING:
    from models.model import Model


class ModelPool:
    """The two roles' models: `lite` for intent and selection, `prime` for review and answer."""

    def __init__(self, lite: str = "reflex", prime: str = "reflex") -> None:
        """Read the model strings; where only one names a model, it plays both roles.

        Raises:
            ModelError: a string names no model, or a base URL in the environment is none.
            ConfigError: a time-out in the environment is none.
        """
        given: dict[Role, ModelSpec] = {"lite": parse_model(lite), "prime": parse_model(prime)}
        real: list[Role] = [role for role, spec in given.items() if spec.provider != "reflex"]
        self._parts: dict[Role, _Part] = {}
        for role in given:
            player = real[0] if len(real) == 1 else role
            self._parts[role] = _Part(given[player], player)
        one, other = self._parts["lite"], self._parts["prime"]
        if (one.spec, one.endpoint) == (other.spec, other.endpoint):
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


class _Part:
    """A model that plays one role or both."""

    def __init__(self, spec: ModelSpec, role: Role) -> None:
        self.spec = spec
        self.endpoint: Endpoint | None = endpoint_of(role) if spec.provider == "openai" else None
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

            return OpenAICompatible(connect(self.spec.name, self.endpoint), is_openai=self.endpoint.is_openai)
        if self.spec.provider == "llamacpp":
            from models.llama.model import LlamaCppModel
            from models.llama.trial import check_runs

            check_installed()
            check_gguf(self.spec.name)
            check_runs(self.spec.name)
            return LlamaCppModel.load(self.spec.name, {name: int(value) for name, value in self.spec.options.items()})
        return None
