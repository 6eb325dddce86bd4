"""The source of a stage's model, and the model's name for telemetry."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from packetgate.models.model import Model


class NamedModel(Protocol):
    """A model with the names that telemetry records."""

    @property
    def name(self) -> str:
        """The model's name."""
        ...

    @property
    def provider(self) -> str | None:
        """The provider; None: not known."""
        ...


@dataclass(frozen=True)
class NamedDecider:
    """The telemetry names of a decider without a `Model`, such as `reflex`."""

    name: str
    provider: str | None = None


ModelSource = Callable[[], Awaitable["Model"]]


async def is_model_of(model: "Model", source: ModelSource | None) -> bool:
    """Whether `source` returns this model."""
    return source is not None and await source() is model
