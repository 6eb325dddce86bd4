"""The model pool: which model plays which role, loaded when first needed."""

import asyncio
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from models.endpoint import Endpoint, Role, endpoint_of, shown
from models.llama.loading import check_gguf, check_installed
from models.spec import REFLEX, ModelSpec, parse_model
from state.errors import ModelError

if TYPE_CHECKING:
    from models.model import Model
    from models.openai.decisions import DecisionEndpoint


class ModelPool:
    """The two roles' models: `lite` for intent and selection, `prime` for review and answer."""

    def __init__(self, lite: str = "reflex", prime: str = "reflex") -> None:
        """Read the model strings; where only one names a model, it plays both roles.

        A `decisions:NAME` as prime reviews and nothing else: what plays `lite` answers.

        Raises:
            ModelError: a string names no model, or a base URL in the environment is none.
            ConfigError: a time-out in the environment is none.
        """
        given: dict[Role, ModelSpec] = {"lite": parse_model(lite), "prime": parse_model(prime)}
        if given["lite"].provider == "decisions":
            raise ModelError(f"{lite!r} answers questions with a probability, and nothing else: it can only be prime")
        self._decisions: _Decisions | None = None
        if given["prime"].provider == "decisions":
            self._decisions, given["prime"] = _Decisions(given["prime"].name), REFLEX
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
    def is_reflex(self) -> bool:
        """Whether no role has a model, whoever reviews."""
        return all(part.spec == REFLEX for part in self._parts.values())

    @property
    def has_reviewer(self) -> bool:
        """Whether a decision endpoint reviews, and not the prime model."""
        return self._decisions is not None

    async def reviewer(self) -> "DecisionEndpoint":
        """Return the decision endpoint that reviews.

        Raises:
            ModelError: there is none, or it lacks its key.
        """
        if self._decisions is None:
            raise ModelError("no decision endpoint reviews: set PACKETGATE_PRIME to decisions:NAME")
        return await asyncio.to_thread(self._decisions.load)

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
        if self._decisions and (not roles or "prime" in roles):
            await self._decisions.check()

    def describe(self, role: Role) -> str:
        """Return what plays the role, for display."""
        reviewed = f"; {self._decisions.description} reviews" if self._decisions else ""
        return self._parts[role].description + reviewed


class _Decisions:
    """The decision endpoint that reviews."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._endpoint = endpoint_of("prime")
        self._lock = threading.Lock()
        self._made: DecisionEndpoint | None = None

    @property
    def description(self) -> str:
        return f"{self._name} at {shown(self._endpoint.base_url)}"

    def load(self) -> "DecisionEndpoint":
        with self._lock:
            if self._made is None:
                from models.openai.decisions import DecisionEndpoint

                self._made = DecisionEndpoint(self._name, self._endpoint)
            return self._made

    async def check(self) -> None:
        endpoint = await asyncio.to_thread(self.load)
        from models.openai.connect import check_endpoint

        await check_endpoint(endpoint.client, self._endpoint)


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

            await check_endpoint(model.chat.root_async_client, self.endpoint)
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

            return LlamaCppModel.load(self.spec.name, {name: int(value) for name, value in self.spec.options.items()})
        return None
