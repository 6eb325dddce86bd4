"""The models of both roles, loaded on first use."""

import asyncio
import hashlib
import json
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from packetgate.models.kinds import REFLEX, ModelKind, ModelName, ModelSetup, parse_model
from packetgate.models.options import ANSWERING, ModelOptions, Role, parsed_options
from packetgate.state.errors import ModelError
from packetgate.state.setting_values import SettingValue

if TYPE_CHECKING:
    from langchain_core.decisions import BaseDecisionModel

    from packetgate.models.model import Model

ModelSource = Callable[[], Awaitable["Model"]]
_Given = dict[str, SettingValue]


async def is_model_of(model: "Model", source: ModelSource | None) -> bool:
    """Whether `source` returns this model."""
    return source is not None and await source() is model


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
        names: dict[Role, ModelName] = {"lite": parse_model(lite), "prime": parse_model(prime)}
        reviewing = {role for role, one in names.items() if one.only_reviews}
        if "lite" in reviewing:
            raise ModelError(
                f"the decision model {lite!r} only reviews calls and cannot be the lite model: "
                "set this model with --prime or PACKETGATE_PRIME"
            )
        tables = from_file or {}
        self._reviewer: _RoleModel | None = None
        if reviewing:
            given = _given("prime", names["prime"], tables)
            self._reviewer, names["prime"] = _RoleModel(names["prime"], "prime", given), REFLEX
        real: list[Role] = [role for role, one in names.items() if one != REFLEX]
        self.given: dict[Role, _Given] = {}
        """The configured options by role, each with the place that sets it."""
        self._models: dict[Role, _RoleModel] = {}
        for role in names:
            player = real[0] if len(real) == 1 else role
            # with a reviewer, the options of prime belong to the reviewer
            self.given[role] = _given("lite" if self._reviewer else role, names[player], tables)
            self._models[role] = _RoleModel(names[player], player, self.given[role])
        if self._models["lite"].setup == self._models["prime"].setup:
            self._models["prime"] = self._models["lite"]

    async def get(self, role: Role) -> "Model | None":
        """Return a role's model, loaded on first use; None for `reflex`."""
        return await asyncio.to_thread(self._models[role].load)

    @property
    def is_reflex(self) -> bool:
        """Whether both roles use `reflex`."""
        return all(one.kind is None for one in self._models.values())

    @property
    def is_hosted(self) -> bool:
        """Whether another company runs the model of a role."""
        return any(one.setup is not None and one.setup.is_hosted for one in self._models.values())

    @property
    def has_reviewer(self) -> bool:
        """Whether a decision endpoint reviews calls."""
        return self._reviewer is not None

    async def reviewer(self) -> "BaseDecisionModel":
        """Return the decision endpoint.

        Raise ModelError if no decision endpoint is configured, or the endpoint has no key.
        """
        if self._reviewer is None:
            raise ModelError(
                "no decision endpoint is configured: set PACKETGATE_PRIME to decisions:NAME or systemone:NAME"
            )
        endpoint: BaseDecisionModel = await asyncio.to_thread(self._reviewer.load)
        return endpoint

    @property
    def role_groups(self) -> tuple[tuple[Role, ...], ...]:
        """The roles, grouped by the model that they share."""
        is_one = self._models["lite"] is self._models["prime"]
        return (("lite", "prime"),) if is_one else (("lite",), ("prime",))

    async def model_digest(self) -> str | None:
        """Return a digest of the model and its options if both roles share them; otherwise None."""
        alone = len(self.role_groups) == 1 and not self._reviewer
        return await asyncio.to_thread(self._models["lite"].digest) if alone else None

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


def _given(role: Role, model: ModelName, tables: Mapping[str, Mapping[str, SettingValue]]) -> _Given:
    if model.kind is None:
        return {}
    named = f"{model.prefix}:{model.name}"
    return parsed_options(role, named, model.options, tables.get(role, {}), model.kind.takes)


class _RoleModel:
    def __init__(self, model: ModelName, role: Role, given: _Given) -> None:
        self.kind: ModelKind | None = model.kind
        self.setup: ModelSetup | None = None
        if self.kind:
            options = ModelOptions.model_validate({name: one.value for name, one in given.items()})
            self.setup = self.kind.parse(model.prefix, model.name, role, options)
        self._lock = threading.Lock()  # threads of several event loops may load the model at once
        self._model: Any = None

    @property
    def description(self) -> str:
        return self.setup.description if self.setup else "reflex (no model)"

    def digest(self) -> str | None:
        if self.kind is None or self.setup is None:
            return None
        asked = self.setup.options.model_dump(include={*ANSWERING}, exclude_none=True)
        identity = [*self.kind.identity(self.setup), asked]
        return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:32]

    def load(self) -> Any:
        with self._lock:
            if self._model is None and self.kind and self.setup:
                self._model = self.kind.open(self.setup)
            return self._model

    async def check(self) -> None:
        if self.kind and self.setup:
            await self.kind.check(self.setup)
