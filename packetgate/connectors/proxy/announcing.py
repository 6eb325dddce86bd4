"""Notify clients when servers come or go, or their tools, prompts or resources change."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING
from weakref import WeakSet

from packetgate.state.private_names import connection_of
from packetgate.tools.spec.tool_spec import digest_of
from packetgate.toolsets.servers.hub import McpHub

if TYPE_CHECKING:
    from fastmcp import Context
    from mcp.server.connection import Connection

log = logging.getLogger(__name__)

LIVENESS_CHECK_S = 5.0
"""Seconds between checks of silent servers, which may have ended."""


class Announcer:
    """Notifies the clients that received a list when the lists change."""

    def __init__(self, hub: McpHub) -> None:
        self._hub = hub
        self._clients: WeakSet[Connection] = WeakSet()
        self._announced_digest = ""
        """Digest of the lists that clients know; empty until a client was shown a list."""

    @asynccontextmanager
    async def announce_in_background(self) -> AsyncIterator["Announcer"]:
        """Announce changes in the background until the block ends."""
        task = asyncio.create_task(self._watch_changes(), name="announcements")
        try:
            yield self
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def remember_client(self, ctx: "Context") -> None:
        """Record that a client is about to receive the current lists."""
        self._clients.add(connection_of(ctx.session))
        self._announced_digest = self._announced_digest or await self._lists_digest()

    async def _watch_changes(self) -> None:
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._hub.tools_changed.wait(), LIVENESS_CHECK_S)
            self._hub.tools_changed.clear()
            try:
                if self._announced_digest:
                    await self._announce_if_changed()
            except Exception:
                log.exception("cannot announce changes to clients")

    async def _announce_if_changed(self) -> None:
        self._hub.maintain_servers(retry=False)
        now = await self._lists_digest()
        if now == self._announced_digest:
            return
        self._announced_digest = now
        for connection in list(self._clients):
            if connection.initialized.is_set():
                await connection.send_tool_list_changed()
                await connection.send_prompt_list_changed()
                await connection.send_resource_list_changed()

    async def _lists_digest(self) -> str:
        """Return a digest of all tools, the connected servers, and the number of changes of prompts and resources."""
        tools = await self._hub.current_catalogue()
        others = [*self._hub.clients()], self._hub.prompt_and_resource_changes()
        return await asyncio.to_thread(
            lambda: digest_of([[[name, spec.digest] for name, spec in tools.items()], *others])
        )
