"""The servers of built-in tools and of chains."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from pydantic import ValidationError

from packetgate.state.base import ms_since
from packetgate.state.routing import Risk, ToolResult
from packetgate.tools.builtin.files import ToolFailure
from packetgate.tools.builtin.tool import BUILT_IN, BuiltinTool
from packetgate.tools.catalogue.chains import CHAINS, ToolChain
from packetgate.tools.servers.results import to_result_async
from packetgate.tools.servers.server import Server
from packetgate.tools.spec.descriptions import brief_of
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.result_store import ResultStore


class BuiltinServer(Server):
    """Server of the built-in tools."""

    def __init__(self, name: str, tools: Iterable[BuiltinTool], root: Path, kept: ResultStore | None = None) -> None:
        super().__init__(name)
        self._kept = kept
        self._digest = f"{BUILT_IN}, of {root.absolute()}"
        self._tools = {tool.name: tool for tool in tools}

    def only_reading(self) -> Self:
        """Return the server with only its read tools, offered beside servers that take paths."""
        self._tools = {name: tool for name, tool in self._tools.items() if tool.risk is Risk.READ}
        self.needs_path_tools = True
        return self

    def tool_specs(self) -> Iterable[ToolSpec]:
        """Return the definitions of its tools."""
        return (replace(tool.spec(self.name), server_digest=self._digest) for tool in self._tools.values())

    async def call(self, tool: str, params: dict[str, Any], idempotency_key: str = "") -> ToolResult:
        """Call a built-in tool and return its result."""
        started, structured = time.perf_counter(), None
        try:
            (text, structured), failed = await self._tools[tool].call(params), False
        except (ToolFailure, ValidationError) as error:
            text, failed = str(error), True
        keep = self._kept.keep if self._kept and not self._tools[tool].reads_on else None
        took_ms = ms_since(started)
        return await to_result_async(text, structured, took_ms, is_error=failed, complete=True, keep=keep)


class ChainServer(Server):
    """The chains of `packetgate.toml` as tools. A call names the next steps, and the graph calls them."""

    def __init__(self, chains: Mapping[str, ToolChain]) -> None:
        super().__init__(CHAINS)
        self._chains = chains

    def tool_specs(self) -> Iterable[ToolSpec]:
        """Return the definitions of its tools."""
        return (_chain_spec(name, chain) for name, chain in self._chains.items())

    async def call(self, tool: str, params: dict[str, Any], idempotency_key: str = "") -> ToolResult:
        """Return a result that names the next steps of the chain."""
        steps = ", ".join(step.tool for step in self._chains[tool].steps)
        return ToolResult(success=True, output=f"its steps follow: {steps}", said="")


def _chain_spec(name: str, chain: ToolChain) -> ToolSpec:
    schema = {
        "type": "object",
        "properties": {name: {"type": "string", "description": about} for name, about in chain.parameters.items()},
        "required": [*chain.parameters],
        "additionalProperties": False,
    }
    return ToolSpec(
        name=f"{CHAINS}.{name}",
        server=CHAINS,
        upstream_name=name,
        full=chain.description,
        brief=brief_of(chain.description),
        input_schema=schema,
        risk=Risk.READ,
        risk_why=("the chain itself changes nothing: each of its steps passes the gate",),
        open_world=False,
    )
