"""All servers: one catalogue of their tools, and calls by canonical name."""

import asyncio
import logging
from collections.abc import Collection, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from packetgate.ranking.ranking import Ranker
from packetgate.state.codes import Code
from packetgate.state.errors import CallRefusedError, ServerError, SessionRefusedError
from packetgate.state.routing import Risk, ToolResult
from packetgate.state.sections import ServerHealth
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.preferences import Preferences
from packetgate.tools.catalogue.toolbox import judged_definition
from packetgate.tools.risk.call import judge_call
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.toolsets.servers.server import ClientAbilities, Server

if TYPE_CHECKING:
    from fastmcp import Client

log = logging.getLogger(__name__)

START_PATIENCE_S = 20.0
"""Longest wait of a turn for servers that start for the first time, and of a call for its server, in seconds; slower
servers join a later turn."""
EARLY_START_PATIENCE_S = 2.0
"""Longest wait of a turn, in seconds, if servers were started before it and some are ready."""
REFRESH_PATIENCE_S = 0.5
"""Longest wait of a turn for changed tools, in seconds; then the last known tools are used."""


class McpHub:
    """Keep one session per server. The others stay usable if a server fails; turns wait at most `patience_s`."""

    def __init__(
        self,
        servers: Iterable[Server],
        *,
        patience_s: float = START_PATIENCE_S,
        preferences: Preferences | None = None,
        ranker: Ranker | None = None,
    ) -> None:
        self._servers = {server.name: server for server in servers}
        self.client_abilities = ClientAbilities()
        """The clients' capabilities; a server receives them when its session opens."""
        self.tools_changed = asyncio.Event()
        """Set when the tools that a server offers may have changed."""
        for server in self._servers.values():
            server.on_change = self.tools_changed.set
            server.client_abilities = self.client_abilities
        self._patience_s = patience_s
        self._tasks: dict[str, asyncio.Task[None]] = {}
        """Tasks that start servers or list their tools, by server."""
        self._awaited: set[str] = set()
        """Servers for whose task a turn has already waited."""
        self._was_started_early = False
        self.last_catalogue = Catalogue(preferences=preferences, ranker=ranker)
        """The catalogue that was built last."""
        self._built: dict[bool, tuple[tuple[tuple[ToolSpec, ...], ...], Catalogue]] = {}
        """The tools of the connected servers (False), also with those of starting ones (True), and their catalogue."""
        self._catalogue_lock = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        tasks = [*self._tasks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(server.close() for server in self._servers.values()), return_exceptions=True)

    def start(self) -> None:
        """Start the servers before the first turn, which then waits less if some are ready."""
        self._was_started_early = True
        self.maintain_servers()

    @property
    def starting(self) -> tuple[str, ...]:
        """Names of the starting servers, sorted."""
        return tuple(sorted(name for name in self._tasks if self._servers[name].state == "connecting"))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all servers, sorted."""
        return tuple(sorted(self._offered_servers()))

    async def catalogue(self, *, wait_for_all: bool = False, called: Collection[str] = ()) -> Catalogue:
        """Return the tools of all servers; those of a starting server as it listed them at its last start.

        The first call starts the servers. Each call retries failed servers, lists the tools of changed
        servers, and waits for the servers of the tools `called`. A server that has not started by then offers no tools
        until it has. The hub waits once for each server that starts for the first time, or with `wait_for_all` for each
        server. After `start`, if some servers are ready, the hub waits for the others only with `wait_for_all`.
        """
        self.maintain_servers()
        await self._recall()
        known = {name for name in self._tasks if self._servers[name].remembered_specs}
        if late := [name for name in known if any(one.name in called for one in self._servers[name].remembered_specs)]:
            await self.wait_for_servers(*late)
            for name in late:
                self._servers[name].remembered_specs = ()
        others = self._tasks if wait_for_all else self._tasks.keys() - known
        if self._was_started_early and not wait_for_all:
            await self._wait(others, min(EARLY_START_PATIENCE_S, self._patience_s), mark=False)
            if any(server.state == "ready" or server.remembered_specs for server in self._offered_servers().values()):
                return await self.listed_catalogue()
        await self._wait(others, self._patience_s)
        return await self.listed_catalogue()

    def maintain_servers(self, *, retry: bool = True) -> None:
        """In the background, start new servers, list changed tools and, with `retry`, restart failed servers."""
        for server in self._servers.values():
            if server.name not in self._tasks and (work := server.maintenance(retry=retry)):
                self._tasks[server.name] = task = asyncio.create_task(work, name=server.name)
                task.add_done_callback(self._note_end)
                self._awaited.discard(server.name)

    async def current_catalogue(self) -> Catalogue:
        """Return the tools of the servers that are connected now, without waiting."""
        return await self._build(with_starting=False)

    async def listed_catalogue(self) -> Catalogue:
        """Return the tools that are connected now, and those that starting servers listed at their last start.

        Never waits for a server. A call of a remembered tool must wait for its server.
        """
        await self._recall()
        return await self._build(with_starting=True)

    async def _recall(self) -> None:
        """Wait until the starting servers have read the list of their last start; that takes milliseconds."""
        await asyncio.gather(*(self._servers[name].is_recalled.wait() for name in self._tasks))

    async def _build(self, *, with_starting: bool) -> Catalogue:
        async with self._catalogue_lock:  # so that a concurrent turn does not use an outdated catalogue
            servers = self._offered_servers().values()
            by_server = tuple(server.listed_specs if with_starting else server.specs for server in servers)
            for specs, catalogue in self._built.values():
                if specs == by_server:
                    self.last_catalogue = catalogue
                    break
            else:
                new = [spec for specs in by_server for spec in specs]
                self.last_catalogue = await asyncio.to_thread(self.last_catalogue.with_tools, new)
            self._built[with_starting] = by_server, self.last_catalogue
            return self.last_catalogue

    def instructions(self) -> dict[str, str]:
        """Return the instructions of the servers that have some, those of starting servers as at their last start."""
        return {name: text for name, server in sorted(self._servers.items()) if (text := server.instructions)}

    def servers_with(self, capability: str) -> list[str]:
        """Return the names of the connected servers that declare a capability, such as `prompts`."""
        return [
            name
            for name, client in self.clients().items()
            if getattr(client.session.server_capabilities, capability, None) is not None
        ]

    async def wait_for_servers(self, *names: str) -> bool:
        """Wait until these servers have started or listed their changed tools, at most as long as a turn waits.

        Return whether one of them was starting or listing.
        """
        self._awaited -= {*names}
        is_busy = not self._tasks.keys().isdisjoint(names)
        await self._wait(names, self._patience_s)
        return is_busy

    async def settle(self) -> None:
        """Wait until no server is starting. A turn may still wait for a server that starts later."""
        while self._tasks:
            await asyncio.wait([*self._tasks.values()])

    async def wait_until_started(self, patience_s: float) -> None:
        """Wait for all starting servers, at most `patience_s` seconds, and for each start only once."""
        await self._wait(self._tasks, patience_s)

    def health(self) -> tuple[ServerHealth, ...]:
        """Return the health of every server, sorted by name."""
        return tuple(server.health() for _, server in sorted(self._offered_servers().items()))

    def tool_notes(self) -> dict[str, tuple[str, ...]]:
        """Return, by server, one line for each tool that is not offered or whose schema was shortened."""
        return {name: server.tool_notes for name, server in sorted(self._servers.items()) if server.tool_notes}

    def rights(self) -> dict[str, str]:
        """Return, by server process, whether it is registered, and its rights."""
        return {name: server.rights for name, server in self._servers.items() if server.rights}

    def clients(self) -> "dict[str, Client[Any]]":
        """Return the open MCP sessions by server, for prompts and resources."""
        return {name: client for name, server in sorted(self._servers.items()) if (client := server.client())}

    async def offered_names(self, kind: Literal["prompts", "resources"]) -> dict[str, tuple[str, ...]]:
        """Return, by server, the names of its prompts, or the addresses of its resources."""
        names = await asyncio.gather(*(server.offered_names(kind) for server in self._servers.values()))
        return {name: found for name, found in zip(self._servers, names, strict=True) if found}

    async def call(self, tool_name: str, params: dict[str, Any], idempotency_key: str = "") -> ToolResult:
        """Call a tool by its canonical name.

        If the server refused the session, the call did not run and is sent again in a new session. A read is also sent
        again if the server disconnected.

        Raises:
            CallRefusedError: no such tool.
            ServerError: the server is not connected or refused the call, or has changed the definition of the tool;
                the call did not run.
            LostCallError: the call was sent, but no usable answer came.
        """
        spec = self.last_catalogue.get(tool_name)
        if spec is None:
            raise CallRefusedError(f"there is no tool {tool_name!r}", code=Code.TOOL_UNKNOWN)
        judged = judged_definition.get() or spec.digest
        server, has_failed, preferences = self._servers[spec.server], False, self.last_catalogue.preferences
        if spec.server in self._tasks and server.state == "connecting":
            await self.wait_for_servers(spec.server)
        else:
            await server.connect()
        while True:
            only_reads = spec.risk is Risk.READ and judge_call(spec, params).risk is Risk.READ
            now = (preferences.apply(one) for one in server.specs if one.name == spec.name)
            is_known = spec.digest == judged and any(one.digest == judged for one in now)
            is_current = is_known and (only_reads or not server.stale)
            if server.state == "ready" and not is_current:
                raise ServerError(
                    f"server {spec.server!r} changed its tools after this call was selected: send the request again"
                )
            session = server.session
            try:
                return await server.call(spec.upstream_name, {**spec.default_args, **params}, idempotency_key)
            except ServerError as error:
                may_repeat = isinstance(error, SessionRefusedError) or (only_reads and error.is_disconnected)
                if has_failed or not may_repeat:
                    raise
                has_failed = True
                await server.connect(old_session=session)

    def _offered_servers(self) -> dict[str, Server]:
        independent = {name: server for name, server in self._servers.items() if not server.requires_path_server}
        takes_path = any(spec.takes_path for server in independent.values() for spec in server.listed_specs)
        return dict(self._servers) if takes_path else independent

    async def _wait(self, names: Collection[str], limit_s: float, *, mark: bool = True) -> None:
        """Wait for the tasks of servers for which no caller has waited; with `mark`, no later call waits for them."""
        pending = {name: task for name, task in self._tasks.items() if name in names and name not in self._awaited}
        ready = {name for name in pending if self._servers[name].state == "ready"}
        for group, group_limit_s in ((pending.keys() - ready, limit_s), (ready, min(limit_s, REFRESH_PATIENCE_S))):
            if group:
                await asyncio.wait([pending[name] for name in group], timeout=group_limit_s)
        self._awaited.update(pending if mark else ready)

    def _note_end(self, task: asyncio.Task[None]) -> None:
        name = task.get_name()
        if self._tasks.get(name) is task:
            del self._tasks[name]
        if not task.cancelled() and (error := task.exception()):
            log.error("server %s failed unexpectedly", name, exc_info=error)
            self._servers[name].fail(error)
        self.tools_changed.set()
