"""Opening where past turns are kept: this machine's database, or a server. It takes no model and no MCP server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from connectors.sessions import Sessions
from connectors.trace.archive import Archive
from graph.settings import Settings


@asynccontextmanager
async def open_archive(settings: Settings) -> AsyncIterator[Archive]:
    """Open what the settings name: a server's where `url` is set, this machine's where not.

    Raises:
        ConfigError: it cannot be opened, or the server cannot be used.
    """
    if settings.url:
        from connectors.remote.errors import translated_errors
        from connectors.remote.sessions import open_remote
        from connectors.trace.remote_archive import RemoteArchive
        from models.endpoint import shown

        async with open_remote(settings.url, settings.assistant) as remote:
            with translated_errors(shown(settings.url)):
                yield RemoteArchive(remote, remote.store)
        return
    from deciders.choosing import reflex_deciders
    from graph.building import build_graph
    from graph.storage import open_checkpointer, open_store
    from tools.servers.hub import McpHub

    async with open_checkpointer(settings) as checkpointer, open_store(settings) as store:
        graph = build_graph(reflex_deciders(), McpHub([])).compile(checkpointer=checkpointer, store=store)
        yield Archive(Sessions(graph), store)
