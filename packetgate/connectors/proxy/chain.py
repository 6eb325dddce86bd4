"""The pipeline of the proxy's calls. No request waits for a server that it does not need."""

from dataclasses import dataclass, field
from typing import Any

from langgraph.store.base import BaseStore

from packetgate.connectors.proxy.sessions import CHANNEL, ProxySession
from packetgate.connectors.proxy.storage import LateJournal, Storage
from packetgate.graph.pipeline import Pipeline, Wanted
from packetgate.state.context import RoutingContext
from packetgate.state.errors import CallRefusedError
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import ToolResult
from packetgate.state.sections import ServerHealth
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.toolbox import AllowedTools
from packetgate.tools.checks.checking import meant_tool
from packetgate.tools.execution.journal import Journal
from packetgate.tools.servers.hub import McpHub
from packetgate.tools.spec.descriptions import SEPARATOR, may_be_of


@dataclass(frozen=True)
class LiveTools:
    """The tools of the servers that are connected now; checks, approvals and calls use them."""

    hub: McpHub

    async def catalogue(self, *, patient: bool = False) -> Catalogue:
        """Return the tools of the connected servers."""
        return await self.hub.live()

    @property
    def known(self) -> Catalogue:
        """The last known tools."""
        return self.hub.known

    def health(self) -> tuple[ServerHealth, ...]:
        """Return the health of every server."""
        return self.hub.health()

    async def call(self, tool_name: str, params: dict[str, Any], idempotency_key: str = "") -> ToolResult:
        """Call a tool by its canonical name."""
        return await self.hub.call(tool_name, params, idempotency_key)


class OfferedTools(LiveTools):
    """Also has the stored tools of servers that are still starting; used for lists."""

    async def catalogue(self, *, patient: bool = False) -> Catalogue:
        """Return the tools to show."""
        self.hub.tend()
        return await self.hub.offered()


@dataclass(frozen=True)
class Chain(Pipeline):
    """The pipeline of a client's calls; each waits for its server and sees its current tools."""

    hub: McpHub = field(kw_only=True)
    storage: Storage = field(kw_only=True)
    late: LateJournal

    @classmethod
    def of(cls, hub: McpHub, journal: Journal, late: LateJournal, storage: Storage) -> "Chain":
        """Return the pipeline of these servers."""
        return cls(LiveTools(hub), journal, late, CHANNEL, "; search_tools finds more", hub=hub, storage=storage)

    @property
    def store(self) -> BaseStore | None:
        """The store of uses; None while it cannot be used."""
        return None if self.late.is_locked else self.storage.store

    def offered(self, settings: RoutingContext) -> AllowedTools:
        """Return the tools that a client may see."""
        return AllowedTools(OfferedTools(self.hub), settings, CHANNEL)

    async def settled(self, name: str, settings: RoutingContext) -> None:
        """Wait until the server of a tool has started, or has listed its changed tools."""
        shown = await self.offered(settings).catalogue()
        known = meant_tool(name, shown)
        servers = [shown[known].server] if known else [one for one in self.hub.names if may_be_of(one, name)]
        for server in servers:
            await self.hub.settled(server)

    async def wanted(self, wanted: Wanted, session: ProxySession, *, apart: bool = False) -> CognitionPacket:
        """Return the packet of a call, as `proposed`, once its server is connected.

        Raises:
            CallRefusedError: there is no such tool, its server is not there, its arguments are not valid, or it does
                not only read.
        """
        await self.settled(wanted.name, session.settings)
        known = await self.toolbox(session.settings).catalogue()
        if wanted.name not in known and (down := self.down(wanted.name, session.settings)):
            raise CallRefusedError(down)
        return await self.proposed(wanted, session, session.settings, apart=apart)

    async def answered(self, packet: CognitionPacket, reply: Any) -> CognitionPacket:
        """Return the packet with the user's reply, once its server is connected."""
        await self.settled(packet.routing.calls[0].tool_name, packet.governance.settings)
        return await super().answered(packet, reply)

    def down(self, name: str, settings: RoutingContext) -> str:
        """Return why a tool's server is not connected; empty if it is, or if the client may not use it."""
        for one in self.hub.health():
            own = name.removeprefix(f"{one.name}{SEPARATOR}").removeprefix(f"{one.name}.")
            allowed = settings.allows_tool(f"{one.name}.{own}")
            if may_be_of(one.name, name) and one.state != "ready" and allowed:
                return f"server {one.name!r} is not there: {one.problem or 'it is still starting'}"
        return ""
