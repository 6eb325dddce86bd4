"""What the stages need of the tools: the catalogue, how the servers are doing, and a way to call."""

import asyncio
from dataclasses import dataclass
from typing import Any, Protocol

from packetgate.state.context import RoutingContext
from packetgate.state.routing import ToolResult
from packetgate.state.sections import ServerHealth
from packetgate.tools.catalogue.catalogue import Catalogue


class Toolbox(Protocol):
    """The tools of one process. `McpHub` is one."""

    async def catalogue(self, *, patient: bool = False) -> Catalogue:
        """Return the tools that are there now; who is patient waits for servers that are starting."""
        ...

    @property
    def known(self) -> Catalogue:
        """The tools as last seen, without waiting for any server."""
        ...

    def health(self) -> tuple[ServerHealth, ...]:
        """Return how every server is doing."""
        ...

    async def call(self, tool_name: str, params: dict[str, Any], idempotency_key: str = "") -> ToolResult:
        """Call a tool by its canonical name; the key says of which call this is an attempt."""
        ...


@dataclass(frozen=True)
class AllowedTools:
    """A toolbox as one run may use it: of no other tool do stages, models and users hear."""

    whole: Toolbox
    context: RoutingContext
    channel: str

    async def catalogue(self, *, patient: bool = False) -> Catalogue:
        """Return the tools that are there now, and allowed."""
        catalogue = await self.whole.catalogue(patient=patient)
        return await asyncio.to_thread(self._limited, catalogue) if self._narrows(catalogue) else catalogue

    @property
    def known(self) -> Catalogue:
        """The allowed tools as last seen. Blocking for milliseconds, where nobody asked for the catalogue yet."""
        return self._limited(self.whole.known)

    def health(self) -> tuple[ServerHealth, ...]:
        """Return how every server is doing."""
        return self.whole.health()

    async def call(self, tool_name: str, params: dict[str, Any], idempotency_key: str = "") -> ToolResult:
        """Call a tool by its canonical name; whether it may run was decided before."""
        return await self.whole.call(tool_name, params, idempotency_key)

    def _limited(self, catalogue: Catalogue) -> Catalogue:
        return catalogue.limited(self.context.allowed_tools, self.channel) if self._narrows(catalogue) else catalogue

    def _narrows(self, catalogue: Catalogue) -> bool:
        return bool(self.context.allowed_tools or catalogue.preferences.policy.rules)
