"""Answer `tools/resolve`: how the gate judges one call, before the client makes it. The call does not run."""

import asyncio
from collections.abc import Sequence
from typing import Any

from fastmcp import Context
from fastmcp.server.dependencies import get_context
from fastmcp.server.extensions import MethodBinding, ServerExtension
from mcp import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, MISSING_REQUIRED_CLIENT_CAPABILITY

from packetgate.connectors.proxy.gateway import Gateway
from packetgate.connectors.proxy.listing import can_be_resolved, listed_hints
from packetgate.gate.facts import CHOSEN_BY_CLIENT
from packetgate.state.redaction import redacted
from packetgate.state.routing import Risk
from packetgate.tools.checks.validation import check_call
from packetgate.tools.spec.tool_spec import TOOL_RESOLUTION
from packetgate.toolsets.servers.resolution import RESOLVE_TOOL, ResolvedHints, ResolveToolParams, ResolveToolResult


def resolves_calls(ctx: Context) -> bool:
    """Whether the client of a request declares that it resolves calls."""
    capabilities = ctx.session.client_capabilities
    return capabilities is not None and (capabilities.extensions or {}).get(TOOL_RESOLUTION) == {}


class ToolResolution(ServerExtension):
    """The extension of the proxy's server."""

    identifier = TOOL_RESOLUTION

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def methods(self) -> Sequence[MethodBinding]:
        """Return the method of the extension."""
        return [MethodBinding(RESOLVE_TOOL, ResolveToolParams, self._resolve)]

    async def _resolve(self, _request: Any, params: ResolveToolParams) -> ResolveToolResult:
        ctx = get_context()
        if not resolves_calls(ctx):
            needed: dict[str, Any] = {"requiredCapabilities": {"extensions": {TOOL_RESOLUTION: {}}}}
            raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, f"the client must declare {TOOL_RESOLUTION}", needed)
        session = self._gateway.session_of(ctx)
        await self._gateway.load_labels(session)
        catalogue = await self._gateway.catalogue(session, params.name)
        name = catalogue.exact_name(params.name)
        spec = catalogue[name] if name else None
        if spec is None or not can_be_resolved(spec):
            raise MCPError(INVALID_PARAMS, f"{params.name!r} is not a tool with calls to resolve")
        facts = session.facts(catalogue)
        if problems := check_call(spec.name, params.arguments, facts.offered, catalogue):
            raise MCPError(INVALID_PARAMS, redacted(" ".join(problem.message for problem in problems)))
        traced = await asyncio.to_thread(
            facts.traced_call, spec, params.arguments, selection_reasoning=CHOSEN_BY_CLIENT
        )
        (call,) = await self._gateway.gate.judge([traced], facts)
        if call.verdict is not None and call.verdict.effect == "refuse":
            raise MCPError(INVALID_PARAMS, redacted(call.verdict.why))
        reads, open_world = call.risk is Risk.READ, call.open_world
        listed = listed_hints(spec)
        if open_world and listed is not None and listed.open_world_hint is False:  # hints must not exceed the list's
            raise MCPError(INTERNAL_ERROR, redacted("; ".join(call.risk_reasons)))
        hints = ResolvedHints(
            read_only_hint=reads,
            destructive_hint=not reads,
            idempotent_hint=reads or bool(spec.idempotent),
            open_world_hint=open_world,
        )
        return ResolveToolResult(name=params.name, annotations=hints)
