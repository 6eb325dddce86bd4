"""The servers behind the proxy, as its requests use them: no request waits for a server that it is not about."""

from dataclasses import dataclass
from typing import Any

from packetgate.state.routing import ToolResult
from packetgate.state.sections import ServerHealth
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.servers.hub import McpHub


@dataclass(frozen=True)
class LiveTools:
    """A toolbox of the servers that are there now: what is checked, approved and run goes by it."""

    hub: McpHub

    async def catalogue(self, *, patient: bool = False) -> Catalogue:
        """Return the tools that are there now."""
        return await self.hub.live()

    @property
    def known(self) -> Catalogue:
        """The tools as last seen."""
        return self.hub.known

    def health(self) -> tuple[ServerHealth, ...]:
        """Return how every server is doing."""
        return self.hub.health()

    async def call(self, tool_name: str, params: dict[str, Any], idempotency_key: str = "") -> ToolResult:
        """Call a tool by its canonical name."""
        return await self.hub.call(tool_name, params, idempotency_key)


class OfferedTools(LiveTools):
    """The same with the tools that an earlier process stored of servers that are still starting: for lists."""

    async def catalogue(self, *, patient: bool = False) -> Catalogue:
        """Return the tools to show."""
        self.hub.tend()
        return await self.hub.offered()
