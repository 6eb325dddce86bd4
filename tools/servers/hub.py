"""All servers together: one catalogue, and calls that reach the right server."""

import asyncio
import logging
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self

from state.errors import CallRefusedError, LostCallError
from state.routing import Risk, ToolResult
from state.sections import ServerHealth
from tools.catalogue.catalogue import Catalogue
from tools.catalogue.preferences import Preferences
from tools.servers.server import Server

log = logging.getLogger(__name__)

PATIENCE_S = 20.0
"""Longest that a turn waits for servers that are still starting; they join a later turn."""


class McpHub:
    """Keeps one session per server, each on its own: a dead or slow one never holds up the others' answers."""

    def __init__(
        self,
        connections: Iterable[Server],
        *,
        patience_s: float = PATIENCE_S,
        preferences: Preferences | None = None,
    ) -> None:
        self._connections = {connection.name: connection for connection in connections}
        self._patience_s = patience_s
        self._starting: dict[str, asyncio.Task[None]] = {}
        self._waited: set[str] = set()
        self._catalogue = Catalogue(preferences=preferences)
        self._known: tuple[object, ...] = ()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._starting.values():
            task.cancel()
        await asyncio.gather(*self._starting.values(), return_exceptions=True)
        await asyncio.gather(*(connection.close() for connection in self._connections.values()), return_exceptions=True)

    async def catalogue(self) -> Catalogue:
        """Return the tools of all servers that are there.

        Servers start when the tools are first asked for. One that is starting is waited for once, a failed one is
        tried again, a changed one is listed again.
        """
        for connection in self._connections.values():
            if connection.session == 0 or connection.may_retry:
                self._start(connection)
        await self._wait_for_starting()
        changed = [one for one in self._connections.values() if one.stale and one.state == "ready"]
        outcomes = await asyncio.gather(*(one.refresh() for one in changed), return_exceptions=True)
        for connection, outcome in zip(changed, outcomes, strict=True):
            await self._isolate(connection, outcome)
        known = tuple(connection.specs for connection in self._connections.values())
        if known != self._known:
            self._known = known
            self._catalogue = await asyncio.to_thread(
                self._catalogue.updated, [spec for specs in known for spec in specs]
            )
        return self._catalogue

    @property
    def known(self) -> Catalogue:
        """The tools as last seen, without waiting for any server."""
        return self._catalogue

    def health(self) -> tuple[ServerHealth, ...]:
        """Return how every server is doing, in order of name."""
        return tuple(self._connections[name].health() for name in sorted(self._connections))

    async def call(self, tool_name: str, params: dict[str, Any]) -> ToolResult:
        """Call a tool by its canonical name. A read whose server went away is tried once more on a new session.

        Raises:
            CallRefusedError: no such tool.
            ServerError: the server is not there; nothing was sent.
            LostCallError: sent, but no answer came.
        """
        spec = self._catalogue.get(tool_name)
        if spec is None:
            raise CallRefusedError(f"there is no tool {tool_name!r}")
        connection = self._connections[spec.server]
        session = connection.session
        try:
            return await connection.call(spec.upstream_name, params)
        except LostCallError:
            still_there = connection.session == session and connection.state == "ready"
            if spec.risk is not Risk.READ or still_there:
                raise
            await connection.connect(instead_of=session)
            return await connection.call(spec.upstream_name, params)

    def _start(self, connection: Server) -> None:
        running = self._starting.get(connection.name)
        if running is None or running.done():
            self._starting[connection.name] = asyncio.create_task(
                connection.connect(instead_of=connection.session), name=f"connect {connection.name}"
            )
            self._waited.discard(connection.name)

    async def _wait_for_starting(self) -> None:
        pending = {name: task for name, task in self._starting.items() if not task.done() and name not in self._waited}
        if pending:
            await asyncio.wait(pending.values(), timeout=self._patience_s)
            self._waited.update(pending)
        for name in [name for name, task in self._starting.items() if task.done()]:
            task = self._starting.pop(name)
            await self._isolate(self._connections[name], None if task.cancelled() else task.exception())

    async def _isolate(self, connection: Server, error: BaseException | None) -> None:
        """Keep what nobody foresaw in one server from the others."""
        if isinstance(error, Exception):
            log.error("server %s broke", connection.name, exc_info=error)
            await connection.fail(error)
        elif error is not None:
            raise error
