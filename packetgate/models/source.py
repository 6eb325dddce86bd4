"""How stages name and load the model that decides."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from packetgate.models.model import Model


class Named(Protocol):
    """A decider, for telemetry."""

    @property
    def name(self) -> str:
        """The name to ask it by."""
        ...

    @property
    def provider(self) -> str | None:
        """Who runs it; None: not known."""
        ...


@dataclass(frozen=True)
class Known:
    """Whom a stage asks, where that is no model of ours."""

    name: str
    provider: str | None = None


ModelSource = Callable[[], Awaitable["Model"]]


async def is_from(model: "Model", source: ModelSource | None) -> bool:
    """Whether a source gives this model."""
    return source is not None and await source() is model
