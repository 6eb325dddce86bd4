"""Notify clients when servers come or go, or their tools, prompts or resources change."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.subscriptions import PromptsListChanged, ResourcesListChanged, ToolsListChanged

from packetgate.state.private_names import connection_of
from packetgate.tools.servers.hub import McpHub
from packetgate.tools.spec.tool_spec import digest_of

if TYPE_CHECKING:
    from fastmcp import Context
    from mcp.server.connection import Connection

log = logging.getLogger(__name__)

LIVENESS_CHECK_S = 5.0
"""Seconds between checks of silent servers, which may have ended."""


class Announcer:
    """Compares the current lists with the last lists that each client received, and notifies clients of changes."""

    def __init__(self, hub: McpHub) -> None:
        self._hub = hub
        self._bus = InMemorySubscriptionBus()
        self._shown: WeakKeyDictionary[Connection, str] = WeakKeyDictionary()
        self._announced = ""
        """Digest of the lists that subscribers know; empty until a client was shown a list."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Announcer"]:
        """Announce changes in the background."""
        task = asyncio.create_task(self._run(), name="announcements")
        try:
            yield self
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def listening(self) -> ListenHandler:
        """Return the handler of the streams by which clients without sessions subscribe."""
        return ListenHandler(self._bus)

    async def remember_shown(self, ctx: "Context") -> None:
        """Record that a client receives the current lists."""
        self._shown[connection_of(ctx.session)] = now = await self._lists()
        self._announced = self._announced or now

    async def _run(self) -> None:
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._hub.tools_changed.wait(), LIVENESS_CHECK_S)
            self._hub.tools_changed.clear()
            try:
                if self._announced:
                    await self._check()
            except Exception:
                log.exception("changes could not be announced")

    async def _check(self) -> None:
        self._hub.maintain_servers(retry=False)
        now = await self._lists()
        if now != self._announced:
            self._announced = now
            for event in (ToolsListChanged(), PromptsListChanged(), ResourcesListChanged()):
                await self._bus.publish(event)
        for connection, shown in list(self._shown.items()):
            if shown != now and connection.initialized.is_set():
                self._shown[connection] = now
                await connection.send_tool_list_changed()
                await connection.send_prompt_list_changed()
                await connection.send_resource_list_changed()

    async def _lists(self) -> str:
        """Return a digest of all tools, the connected servers, and the number of their other changes."""
        tools, others = (
            await self._hub.current_catalogue(),
            [[*self._hub.clients()], self._hub.prompt_and_resource_changes()],
        )
        return await asyncio.to_thread(
            lambda: digest_of([[[name, spec.digest] for name, spec in tools.items()], *others])
        )
