"""Notify clients when servers come or go, or their tools change."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.subscriptions import PromptsListChanged, ResourcesListChanged, ToolsListChanged

from packetgate.connectors.proxy.recording import in_background
from packetgate.state.private_names import connection_of
from packetgate.tools.servers.hub import McpHub
from packetgate.tools.spec.tool_spec import digest_of

if TYPE_CHECKING:
    from fastmcp import Context
    from mcp.server.connection import Connection

log = logging.getLogger(__name__)

LIVENESS_CHECK_S = 5.0
"""Seconds between checks of silent servers, which may have ended."""


class _Lists(NamedTuple):
    tools: str
    others: str
    """Digest of the servers with prompts or resources, and of their change notifications."""


class Announcer:
    """Compares the current lists with the last lists that each client received, and notifies clients of changes."""

    def __init__(self, hub: McpHub) -> None:
        self._hub = hub
        self._bus = InMemorySubscriptionBus()
        self._shown: WeakKeyDictionary[Connection, _Lists] = WeakKeyDictionary()
        self._last: _Lists | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Announcer"]:
        """Announce changes in the background."""
        async with in_background(self._run(), "announcements"):
            yield self

    def listening(self) -> ListenHandler:
        """Return the handler of the streams by which clients without sessions subscribe."""
        return ListenHandler(self._bus)

    async def remember_shown(self, ctx: "Context") -> None:
        """Record that a client receives the current lists."""
        self._shown[connection_of(ctx.session)] = self._last = await self._now()

    async def _run(self) -> None:
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._hub.changed.wait(), LIVENESS_CHECK_S)
            self._hub.changed.clear()
            try:
                await self._check()
            except Exception:
                log.exception("changes could not be announced")

    async def _check(self) -> None:
        if self._last is None:  # no client was shown a list
            return
        self._hub.tend(retry=False)
        now, before = await self._now(), self._last
        self._last = now
        if now.tools != before.tools:
            await self._bus.publish(ToolsListChanged())
        if now.others != before.others:
            await self._bus.publish(PromptsListChanged())
            await self._bus.publish(ResourcesListChanged())
        for connection, shown in list(self._shown.items()):
            if shown != now and connection.initialized.is_set():
                self._shown[connection] = now
                if now.tools != shown.tools:
                    await connection.send_tool_list_changed()
                if now.others != shown.others:
                    await connection.send_prompt_list_changed()
                    await connection.send_resource_list_changed()

    async def _now(self) -> _Lists:
        offered = await self._hub.offered()
        capabilities = ((name, client.session.server_capabilities) for name, client in self._hub.clients().items())
        others = [[name, bool(has.prompts), bool(has.resources)] for name, has in capabilities if has]
        tools = await asyncio.to_thread(lambda: digest_of([[name, spec.digest] for name, spec in offered.items()]))
        return _Lists(tools, digest_of([[server for server in others if any(server[1:])], self._hub.other_changes()]))
