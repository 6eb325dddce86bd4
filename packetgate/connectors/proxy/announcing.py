"""Notify clients when servers connect or disconnect, or their tools, prompts or resources change."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Literal
from weakref import WeakKeyDictionary

from packetgate.state.private_names import connection_of
from packetgate.tools.spec.tool_spec import digest_of
from packetgate.toolsets.servers.hub import McpHub

if TYPE_CHECKING:
    from fastmcp import Context
    from mcp.server.connection import Connection

log = logging.getLogger(__name__)

LIVENESS_CHECK_S = 5.0
"""Seconds between checks of silent servers, which may have ended."""
START_PATIENCE_S = 10.0
"""Longest time in which starting servers join one announcement, in seconds."""

ListKind = Literal["tools", "prompts", "resources"]


class Announcer:
    """Notifies a client when a list that it received has changed."""

    def __init__(self, hub: McpHub) -> None:
        self._hub = hub
        self._known: dict[ListKind, WeakKeyDictionary[Connection, str]] = {
            "tools": WeakKeyDictionary(),
            "prompts": WeakKeyDictionary(),
            "resources": WeakKeyDictionary(),
        }
        """By kind, the digest of the list that a client knows."""

    @asynccontextmanager
    async def announce_in_background(self) -> AsyncIterator["Announcer"]:
        """Announce changes in the background until the block ends."""
        task = asyncio.create_task(self._watch_changes(), name="announcements")
        try:
            yield self
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def remember_client(self, ctx: "Context", kind: ListKind) -> None:
        """Record that a client is about to receive the current list of this kind."""
        self._known[kind][connection_of(ctx.session)] = await self._digest(kind)

    async def _watch_changes(self) -> None:
        while True:
            await self._wait_for_change(LIVENESS_CHECK_S)
            try:
                if any(self._known.values()):
                    self._hub.maintain_servers(retry=False)
                    latest = time.monotonic() + START_PATIENCE_S
                    while self._hub.starting and (left := latest - time.monotonic()) > 0:
                        await self._wait_for_change(left)
                    await self._announce_changes()
            except Exception:
                log.exception("cannot announce changes to clients")

    async def _wait_for_change(self, limit_s: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._hub.tools_changed.wait(), limit_s)
        self._hub.tools_changed.clear()

    async def _announce_changes(self) -> None:
        for kind, clients in self._known.items():
            now = await self._digest(kind)
            for connection in [client for client, known in clients.items() if known != now]:
                if connection.initialized.is_set():
                    clients[connection] = now
                    match kind:
                        case "tools":
                            await connection.send_tool_list_changed()
                        case "prompts":
                            await connection.send_prompt_list_changed()
                        case "resources":
                            await connection.send_resource_list_changed()

    async def _digest(self, kind: ListKind) -> str:
        """Return a digest of all tools, or of the names of all prompts or resources."""
        if kind != "tools":
            return digest_of(await self._hub.offered_names(kind))
        tools = await self._hub.listed_catalogue()
        return await asyncio.to_thread(lambda: digest_of([[name, spec.digest] for name, spec in tools.items()]))
