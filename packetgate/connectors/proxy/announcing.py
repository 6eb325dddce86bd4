"""Notify clients when servers come or go, or their tools change."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.subscriptions import PromptsListChanged, ResourcesListChanged, ToolsListChanged

from packetgate.connectors.proxy.storage import in_background
from packetgate.state.private_names import connection_of
from packetgate.tools.servers.hub import McpHub
from packetgate.tools.spec.tool_spec import digest_of

if TYPE_CHECKING:
    from fastmcp import Context
    from mcp.server.connection import Connection

log = logging.getLogger(__name__)

LOOK_S = 5.0
"""Seconds between checks of silent servers, which may have ended."""


@dataclass(frozen=True)
class _Shown:
    tools: str
    rest: str
    """Digest of the servers with prompts or resources, and of their change notifications."""


@dataclass
class Announcer:
    """Compares the current lists with those that each client was shown last, and notifies it of a difference."""

    hub: McpHub
    bus: InMemorySubscriptionBus = field(default_factory=InMemorySubscriptionBus)
    """For clients of the protocol without sessions, which subscribe by opening a stream."""
    _shown: "WeakKeyDictionary[Connection, _Shown]" = field(default_factory=WeakKeyDictionary)
    _last: _Shown | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Announcer"]:
        """Announce changes in the background."""
        async with in_background(self._run(), "announcements"):
            yield self

    def listening(self) -> ListenHandler:
        """Return the handler of those streams."""
        return ListenHandler(self.bus)

    async def has_shown(self, ctx: "Context") -> None:
        """Remember that a client is shown the current lists."""
        self._shown[connection_of(ctx.session)] = self._last = await self._now()

    async def _run(self) -> None:
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self.hub.changed.wait(), LOOK_S)
            self.hub.changed.clear()
            try:
                await self._look()
            except Exception:
                log.exception("changes could not be announced")

    async def _look(self) -> None:
        if self._last is None:  # nobody was shown anything
            return
        self.hub.tend(retry=False)
        now, before = await self._now(), self._last
        self._last = now
        if now != before:
            await self._publish(before, now)
        for connection, shown in list(self._shown.items()):
            if shown != now:
                self._shown[connection] = now
                await _tell(connection, shown, now)

    async def _publish(self, before: _Shown, now: _Shown) -> None:
        if now.tools != before.tools:
            await self.bus.publish(ToolsListChanged())
        if now.rest != before.rest:
            await self.bus.publish(PromptsListChanged())
            await self.bus.publish(ResourcesListChanged())

    async def _now(self) -> _Shown:
        offered = await self.hub.offered()
        rest: list[Any] = []
        for name, client in self.hub.clients().items():
            has = client.session.server_capabilities
            rest.append([name, has is not None and bool(has.prompts), has is not None and bool(has.resources)])
        changes = self.hub.told_changes()
        tools = await asyncio.to_thread(lambda: digest_of([[name, spec.digest] for name, spec in offered.items()]))
        return _Shown(tools, digest_of([[one for one in rest if one[1] or one[2]], changes]))


async def _tell(connection: "Connection", shown: _Shown, now: _Shown) -> None:
    if not connection.initialized.is_set():
        return
    if now.tools != shown.tools:
        await connection.send_tool_list_changed()
    if now.rest != shown.rest:
        await connection.send_prompt_list_changed()
        await connection.send_resource_list_changed()
