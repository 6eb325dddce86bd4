"""Offer `packetgate init` to a new user."""

import typer

from packetgate.connectors.terminal.reading import is_at_terminal
from packetgate.graph.private_files import private_file
from packetgate.graph.settings import Settings

OFFER = "No language model is set up. Look for one now (packetgate init)? This is asked once."


async def offer_init(settings: Settings) -> None:
    """Offer `init` if no model was chosen: at a terminal, and once for each user."""
    offered = settings.home / "offered"
    if not is_at_terminal() or {"lite", "prime"} & settings.model_fields_set or offered.exists():
        return
    try:
        private_file(offered)
    except OSError:  # the command itself reports the unusable folder
        return
    if typer.confirm(OFFER):
        from packetgate.connectors.terminal.init import init

        await init()
