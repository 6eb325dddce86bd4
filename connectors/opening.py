"""Opening the sessions that the settings name."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from connectors.sessions import Sessions
from graph.settings import Settings


@asynccontextmanager
async def open_sessions(settings: Settings) -> AsyncIterator[Sessions]:
    """Open the sessions that the settings name: a server's where `url` is set, this machine's where not.

    Raises:
        ConfigError, ModelError: something in the settings cannot be used.
    """
    if settings.url:
        from connectors.remote.sessions import open_remote

        async with open_remote(settings.url, settings.assistant) as remote:
            yield remote
        return
    from graph.composition import open_graph

    async with open_graph(settings) as graph:
        yield Sessions(graph)
