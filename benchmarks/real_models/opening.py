"""Open a real model by name, and return deciders that use only this model."""

from packetgate.deciders.choosing import language_deciders
from packetgate.deciders.protocols import Deciders
from packetgate.models.model import Model
from packetgate.models.pool import ModelPool
from packetgate.state.errors import InputError


async def open_model(name: str) -> Model:
    """Return a model by its name, as in PACKETGATE_LITE.

    Raises:
        InputError: the name is not that of a language model.
        ModelError: the model cannot be loaded or reached.
    """
    found = await ModelPool(name).get("lite")
    if found is None:
        raise InputError(f"{name!r} is no language model")
    return found


def by_one(model: Model) -> Deciders:
    """Return deciders that use this model at each stage."""

    async def source() -> Model:
        return model

    return language_deciders(source, source)
