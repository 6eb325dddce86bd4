"""Who is asked for a decision, as a stage knows them: by name, and loaded when first asked."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from packetgate.models.model import Model


class Named(Protocol):
    """Whom a stage asks, as telemetry tells of it."""

    @property
    def name(self) -> str:
        """The name that it is asked by."""
        ...

    @property
    def provider(self) -> str | None:
        """Who runs it; None: not known."""
        ...


ModelSource = Callable[[], Awaitable["Model"]]


async def is_from(model: "Model", source: ModelSource | None) -> bool:
    """Whether a source gives this very model: one model for two roles, asked in one way."""
    return source is not None and await source() is model
