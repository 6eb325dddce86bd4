"""What the stages need of the tools: the catalogue, how the servers are doing, and a way to call."""

from typing import Any, Protocol

from state.routing import ToolResult
from state.sections import ServerHealth
from tools.catalogue.catalogue import Catalogue


class Toolbox(Protocol):
    """The tools of one process. `McpHub` is one."""

    async def catalogue(self) -> Catalogue:
        """Return the tools that are there now."""
        ...

    @property
    def known(self) -> Catalogue:
        """The tools as last seen, without waiting for any server."""
        ...

    def health(self) -> tuple[ServerHealth, ...]:
        """Return how every server is doing."""
        ...

    async def call(self, tool_name: str, params: dict[str, Any]) -> ToolResult:
        """Call a tool by its canonical name."""
        ...
