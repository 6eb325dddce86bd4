"""The chains of `packetgate.toml` as tools: calling one says which steps follow, and the graph makes their calls."""

from collections.abc import Mapping
from typing import Any

from mcp_types import Tool, ToolAnnotations

from packetgate.state.routing import ToolResult
from packetgate.tools.catalogue.chains import CHAINS, Chain
from packetgate.tools.servers.server import Server
from packetgate.tools.servers.specs import spec_of


class ChainServer(Server):
    """Chains, each a tool that changes nothing by itself: each of its steps passes the gate as a call of its own."""

    def __init__(self, chains: Mapping[str, Chain]) -> None:
        super().__init__(CHAINS)
        self._chains = chains

    async def connect(self, instead_of: int) -> None:
        """Describe the chains."""
        self.session = instead_of + 1
        self.specs = tuple(
            spec_of(self.name, _described(name, one), trusted=True) for name, one in self._chains.items()
        )
        self.state = "ready"

    async def call(self, tool: str, params: dict[str, Any], idempotency_key: str = "") -> ToolResult:
        """Say which steps follow."""
        steps = ", ".join(step.tool for step in self._chains[tool].steps)
        return ToolResult(success=True, output=f"its steps follow: {steps}", said="")


def _described(name: str, chain: Chain) -> Tool:
    schema = {
        "type": "object",
        "properties": {one: {"type": "string", "description": about} for one, about in chain.parameters.items()},
        "required": [*chain.parameters],
        "additionalProperties": False,
    }
    hints = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    return Tool(name=name, description=chain.description, input_schema=schema, annotations=hints)
