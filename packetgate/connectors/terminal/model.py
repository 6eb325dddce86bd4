"""`packetgate model pull`: download a model, set it in packetgate.toml, and try it."""

import asyncio
from typing import Annotated, Literal

import typer

from packetgate.connectors import rendering
from packetgate.connectors.options import settings_from
from packetgate.connectors.terminal.init import write_models
from packetgate.connectors.terminal.pulling import find_model, listed_models, pull, show_models
from packetgate.connectors.terminal.turns import ask
from packetgate.graph.composition import model_pool
from packetgate.graph.records import evidence_version
from packetgate.graph.settings import DEFAULT_PREFERENCES, Settings
from packetgate.graph.storage import open_store
from packetgate.state.errors import ModelError
from packetgate.tools.calibration import read_calibration

_REQUEST = "Which files are in this folder?"


async def model(
    action: Annotated[Literal["pull"], typer.Argument(help="pull: download a model.")],
    name: Annotated[
        str | None,
        typer.Argument(help="A name of the list, or OWNER/REPO/FILE.gguf. Without a name, the list is shown."),
    ] = None,
) -> int:
    """Download a GGUF model from the Hugging Face hub, set it in packetgate.toml, and try it.

    The file goes to `models` below PACKETGATE_HOME. Its checksum is verified. The same command continues an
    interrupted download. HF_ENDPOINT names another hub, HF_TOKEN a token. No other command downloads a model, except
    `init`, after a yes.
    """
    settings = settings_from()
    if name is None:
        show_models(settings.models_path, await _measured(settings))
        rendering.say("packetgate model pull NAME downloads one")
        return 0
    preferences = settings.preferences_path or DEFAULT_PREFERENCES
    path = await asyncio.to_thread(pull, find_model(name), settings.models_path)
    chosen = f"llamacpp:{path}"
    await asyncio.to_thread(write_models, preferences, {"lite": chosen}, settings.home)
    try:
        await model_pool(settings.model_copy(update={"lite": chosen, "prime": "reflex"})).check()
    except ModelError as error:
        rendering.say(f"The model was not tried: {error}", "yellow")
        return 0
    rendering.say(f'Trying it: packetgate ask "{_REQUEST}"', "")
    await ask([_REQUEST], lite=chosen)
    return 0


async def _measured(settings: Settings) -> dict[str, str]:
    """Return the results of `evaluate` for each downloaded model."""
    paths = {name: one.path_in(settings.models_path) for name, one in listed_models().items()}
    paths = {name: path for name, path in paths.items() if path.exists()}
    if not paths or not settings.has_database:
        return {}
    found = {}
    async with open_store(settings) as store:
        for name, path in paths.items():
            pool = model_pool(settings.model_copy(update={"lite": f"llamacpp:{path}", "prime": "reflex"}))
            calibration = await read_calibration(store, await pool.model_digest() or name)
            if calibration.version == evidence_version():
                found[name] = calibration.summary
    return found
