"""The source of a stage's model."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from packetgate.models.model import Model


ModelSource = Callable[[], Awaitable["Model"]]


async def is_model_of(model: "Model", source: ModelSource | None) -> bool:
    """Whether `source` returns this model."""
    return source is not None and await source() is model
