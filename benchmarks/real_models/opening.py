"""A real model by name, and the deciders that ask it alone."""

from packetgate.deciders.choosing import language_deciders
from packetgate.deciders.protocols import Deciders
from packetgate.models.model import Model
from packetgate.models.pool import ModelPool
from packetgate.state.errors import InputError


async def open_model(name: str) -> Model:
    """Return a model by its name, as PACKETGATE_LITE has it.

    Raises:
        InputError: it is no language model.
        ModelError: it cannot be loaded or reached.
    """
    found = await ModelPool(name).get("lite")
    if found is None:
        raise InputError(f"{name!r} is no language model")
    return found


def by_one(model: Model) -> Deciders:
    """Return deciders of which each stage asks this model."""

    async def source() -> Model:
        return model

    return language_deciders(source, source)
