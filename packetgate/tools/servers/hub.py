"""All servers: one catalogue of their tools, and calls by canonical name."""

import asyncio
import logging
from collections.abc import Coroutine, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from packetgate.state.codes import Code
from packetgate.state.errors import CallRefusedError, LostCallError, ServerError, SessionRefusedError
from packetgate.state.routing import Risk, ToolResult
from packetgate.state.sections import ServerHealth
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.preferences import Preferences
from packetgate.tools.ranking.ranking import SHIPPED, Meaning
from packetgate.tools.risk.call import judge_call
from packetgate.tools.servers.server import Server
from packetgate.tools.spec.tool_spec import ToolSpec

if TYPE_CHECKING:
    from fastmcp import Client

log = logging.getLogger(__name__)

PATIENCE_S = 20.0
"""Longest wait of a turn for starting servers, in seconds; they join a later turn."""
SOON_S = 2.0
"""The same if servers were started before the turn, and some are ready."""
REFRESH_PATIENCE_S = 0.5
"""Longest wait of a turn for changed tools, in seconds; then the last known ones hold."""

MOST_SENT = 3
"""Attempts of a read at a busy server."""
MOST_REST_S = 10.0
"""Longest `Retry-After` that is waited for, in seconds."""


class McpHub:
    """Keeps one session per server. A dead or slow server does not delay the others."""

    def __init__(
        self,
        connections: Iterable[Server],
        *,
        patience_s: float = PATIENCE_S,
        preferences: Preferences | None = None,
        meaning: Meaning = SHIPPED,
    ) -> None:
        self._connections = {connection.name: connection for connection in connections}
        self.changed = asyncio.Event()
        """Set when the offer of a server may have changed."""
        for connection in self._connections.values():
            connection.on_change = self.changed.set
        self._patience_s = patience_s
        self._tasks: dict[str, asyncio.Task[None]] = {}
        """Tasks that start servers or list their tools, by server."""
        self._waited: set[str] = set()
        self._ahead = False
        """Whether `start` was called."""
        self._catalogue = Catalogue(preferences=preferences, meaning=meaning)
        self._known: tuple[object, ...] = ()
        self._shown = self._catalogue
        self._known_shown: tuple[object, ...] = ()
        self._recalling = asyncio.Lock()
        self._has_recalled = False
        self._updating = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        await asyncio.gather(*(connection.close() for connection in self._connections.values()), return_exceptions=True)

    def start(self) -> None:
        """Start the servers before the first turn, which then waits less if some are ready."""
        self._ahead = True
        self.tend()

    @property
    def starting(self) -> tuple[str, ...]:
        """Names of the starting servers, sorted."""
        running = (name for name, task in self._tasks.items() if not task.done())
        return tuple(sorted(name for name in running if self._connections[name].state == "connecting"))

    async def catalogue(self, *, patient: bool = False) -> Catalogue:
        """Return the tools of all connected servers.

        The first call starts the servers. A starting server is waited for once, a failed one is retried, a changed one
        lists its tools again. After `start`, if some servers are ready, only a `patient` caller waits for the others.
        """
        self.tend()
        await self._wait(hurried=self._ahead and not patient)
        return await self.live()

    def tend(self, *, retry: bool = True) -> None:
        """Start servers, list the tools of changed ones, and ping those that may hang, all in the background.

        Without `retry`, failed servers are left alone.
        """
        for connection in self._connections.values():
            gone = connection.may_retry and (retry or connection.state == "ready")
            if connection.session == 0 or gone:
                self._run(connection, connection.connect(instead_of=connection.session))
            elif connection.suspected:
                self._run(connection, connection.revive())
            elif connection.stale and connection.state == "ready":
                self._run(connection, connection.refresh())

    async def live(self) -> Catalogue:
        """Return the tools of the servers that are connected now, without waiting."""
        self._reap()
        async with self._updating:  # so that a concurrent turn does not use an outdated catalogue
            known = tuple(connection.specs for connection in self._offered().values())
            if known != self._known:
                specs = [spec for specs in known for spec in specs]
                self._catalogue = await asyncio.to_thread(self._catalogue.updated, specs)
                self._known = known
            return self._catalogue

    async def offered(self) -> Catalogue:
        """Return the tools to list, without waiting: those of `live`, and stored ones of starting servers."""
        async with self._recalling:
            if not self._has_recalled:
                await asyncio.gather(*(connection.recall() for connection in self._connections.values()))
                self._has_recalled = True
        live = await self.live()
        async with self._updating:
            servers = self._offered().values()
            if not any(one.is_first_start and one.stored for one in servers):
                return live
            known = tuple(one.offered for one in servers)
            if known != self._known_shown:
                specs = [spec for specs in known for spec in specs]
                self._shown = await asyncio.to_thread(live.updated, specs)
                self._known_shown = known
            return self._shown

    async def settled(self, *names: str) -> None:
        """Wait until servers have started or listed their changed tools, at most as long as a turn."""
        await self._wait(frozenset(names), again=True)

    async def started(self, patience_s: float) -> None:
        """Wait for all starting servers, once for each start."""
        await self._wait(patience_s=patience_s)

    async def introduced(self, patience_s: float) -> None:
        """Wait for starting servers without known tools, once for each start."""
        await self.offered()
        unknown = {name for name in self._tasks if not self._connections[name].offered}
        await self._wait(frozenset(unknown), patience_s)

    @property
    def known(self) -> Catalogue:
        """The last catalogue."""
        return self._catalogue

    def health(self) -> tuple[ServerHealth, ...]:
        """Return the health of every server, sorted by name."""
        return tuple(connection.health() for _, connection in sorted(self._offered().items()))

    def notes(self) -> dict[str, tuple[str, ...]]:
        """Return one line for each tool that is not offered, or of whose schema something was left out, by server."""
        return {name: one.notes for name, one in sorted(self._connections.items()) if one.notes}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all servers, sorted."""
        return tuple(sorted(self._offered()))

    def clients(self) -> "dict[str, Client[Any]]":
        """Return the open MCP sessions by server, for prompts and resources."""
        open_ = {name: connection.client() for name, connection in sorted(self._connections.items())}
        return {name: client for name, client in open_.items() if client is not None}

    def told_changes(self) -> int:
        """Return the number of changes of prompts and resources so far."""
        return sum(connection.other_changes for connection in self._connections.values())

    async def call(self, tool_name: str, params: dict[str, Any], idempotency_key: str = "") -> ToolResult:
        """Call a tool by its canonical name.

        A call is sent again in a new session if the server refused the session, because it did not run. A known read is
        also sent again if the server went away or was busy.

        Raises:
            CallRefusedError: no such tool.
            ServerError: the server is not there, or refused the call, or what would change something is not as last
                seen; it did not run.
            LostCallError: sent, but no answer came.
        """
        spec = self._catalogue.get(tool_name)
        if spec is None:
            raise CallRefusedError(f"there is no tool {tool_name!r}", code=Code.TOOL_UNKNOWN)
        connection = self._connections[spec.server]
        await connection.revive()
        sent = 0
        while True:
            reads = spec.risk is Risk.READ and judge_call(spec, params).risk is Risk.READ
            if not reads and connection.state == "ready" and not _stands(spec, connection):
                raise ServerError(f"server {spec.server!r} has changed its tools meanwhile: ask for it again")
            session, sent = connection.session, sent + 1
            try:
                return await connection.call(spec.upstream_name, {**spec.standing, **params}, idempotency_key)
            except ServerError as error:
                if not isinstance(error, SessionRefusedError) and not reads:
                    raise
                await _before_next(sent, error, connection, session)

    def _offered(self) -> dict[str, Server]:
        asked = {name: one for name, one in self._connections.items() if not one.beside_paths}
        takes_path = any(spec.takes_path for one in asked.values() for spec in one.specs)
        return dict(self._connections) if takes_path else asked

    def _run(self, connection: Server, work: Coroutine[Any, Any, None]) -> None:
        running = self._tasks.get(connection.name)
        if running is not None and not running.done():
            work.close()
            return
        task = asyncio.create_task(work, name=f"server {connection.name}")
        task.add_done_callback(lambda _: self.changed.set())
        self._tasks[connection.name] = task
        self._waited.discard(connection.name)

    async def _wait(
        self,
        only: frozenset[str] | None = None,
        patience_s: float | None = None,
        *,
        again: bool = False,
        hurried: bool = False,
    ) -> None:
        among = self._tasks.keys() if only is None else only & self._tasks.keys()
        left = {name: self._tasks[name] for name in among if again or name not in self._waited}
        pending = {name: task for name, task in left.items() if not task.done()}
        ready = {name for name in pending if self._connections[name].state == "ready"}
        longest_s = self._patience_s if patience_s is None else patience_s
        starting = pending.keys() - ready
        if starting and hurried:
            await asyncio.wait([pending[name] for name in starting], timeout=min(SOON_S, longest_s))
            hurried = any(one.state == "ready" for one in self._offered().values())
        for names, limit_s in (
            (set() if hurried else starting, longest_s),
            (ready, min(longest_s, REFRESH_PATIENCE_S)),
        ):
            if names:
                await asyncio.wait([pending[name] for name in names], timeout=limit_s)
        self._waited.update(ready if hurried else pending)
        self._reap()

    def _reap(self) -> None:
        for name in [name for name, task in self._tasks.items() if task.done()]:
            task = self._tasks.pop(name)
            self._isolate(self._connections[name], None if task.cancelled() else task.exception())

    def _isolate(self, connection: Server, error: BaseException | None) -> None:
        if isinstance(error, Exception):
            log.error("server %s broke", connection.name, exc_info=error)
            connection.fail(error)
        elif error is not None:
            raise error


async def _before_next(sent: int, error: ServerError, connection: Server, session: int) -> None:
    refused = isinstance(error, SessionRefusedError)
    gone = connection.session != session or connection.state != "ready"
    if refused or (gone and (isinstance(error, LostCallError) or error.again_in_s is not None)):
        if sent > 1:
            raise error
        await connection.connect(instead_of=session)
    elif error.again_in_s is None or error.again_in_s > MOST_REST_S or sent > MOST_SENT - 1:
        raise error
    else:
        await asyncio.sleep(error.again_in_s)


def _stands(spec: ToolSpec, connection: Server) -> bool:
    return not connection.stale and any(one.name == spec.name and one.digest == spec.digest for one in connection.specs)
