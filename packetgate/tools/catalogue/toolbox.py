"""The interface through which stages list and call tools."""

import asyncio
from collections.abc import Collection
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

from packetgate.state.context import RoutingContext
from packetgate.state.routing import ToolResult
from packetgate.state.sections import ServerHealth
from packetgate.tools.catalogue.catalogue import Catalogue

judged_definition: ContextVar[str] = ContextVar("judged_definition", default="")
"""Digest of the definition by which the gate judged the running call. A toolbox sends the call with no other."""


class PausedCallError(Exception):
    """A tool passed control to the graph, to ask a question first or to hand over to the parent graph."""

    def __init__(self, signal: Exception, result: ToolResult | None = None) -> None:
        """Pause a call.

        Args:
            signal: the exception that the graph raises.
            result: the result of a call that has ended; None: the call runs again with the answer.
        """
        super().__init__(f"the tool interrupted its call: {signal}")
        self.signal, self.result = signal, result


class Toolbox(Protocol):
    """The tools of one process. The implementation is `McpHub`."""

    async def catalogue(self, *, wait_for_all: bool = False, called: Collection[str] = ()) -> Catalogue:
        """Return the tools; wait for the servers of the tools `called`, or `wait_for_all`."""
        ...

    @property
    def last_catalogue(self) -> Catalogue:
        """The last catalogue, without waiting for any server."""
        ...

    def health(self) -> tuple[ServerHealth, ...]:
        """Return the state of every server."""
        ...

    async def call(self, tool_name: str, params: dict[str, Any], idempotency_key: str = "") -> ToolResult:
        """Call a tool by its canonical name; all attempts of one call have the same idempotency key."""
        ...


@dataclass(frozen=True)
class AllowedTools:
    """A toolbox without the tools that a run's allow-list or a policy rule excludes."""

    toolbox: Toolbox
    context: RoutingContext
    channel: str

    async def catalogue(self, *, wait_for_all: bool = False, called: Collection[str] = ()) -> Catalogue:
        """Return the allowed tools; wait as the toolbox does."""
        catalogue = await self.toolbox.catalogue(wait_for_all=wait_for_all, called=called)
        return await asyncio.to_thread(self.restrict, catalogue)

    @property
    def last_catalogue(self) -> Catalogue:
        """The last catalogue of allowed tools. May block for milliseconds."""
        return self.restrict(self.toolbox.last_catalogue)

    def health(self) -> tuple[ServerHealth, ...]:
        """Return the state of every server."""
        return self.toolbox.health()

    async def call(self, tool_name: str, params: dict[str, Any], idempotency_key: str = "") -> ToolResult:
        """Call a tool by its canonical name, without checking whether it may run."""
        return await self.toolbox.call(tool_name, params, idempotency_key)

    def restrict(self, catalogue: Catalogue) -> Catalogue:
        """Return the allowed tools of a catalogue. May block for milliseconds."""
        is_restricted = self.context.allowed_tools or catalogue.preferences.policy.rules
        return catalogue.restrict(self.context.allowed_tools, self.channel) if is_restricted else catalogue
