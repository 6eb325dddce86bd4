"""Provide stand-ins for the real graph: tools without servers, and careless deciders."""

import zlib
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from packetgate.deciders.protocols import IntentDecision, SelectedCall, Selection
from packetgate.reflex.intent import detect_by_reflex
from packetgate.reflex.values.filling import fill_parameters
from packetgate.state.context import RoutingContext
from packetgate.state.errors import CallRefusedError
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import ToolResult
from packetgate.state.sections import ServerHealth
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.toolbox import Toolbox
from packetgate.tools.spec.tool_spec import type_name

INVENTED: dict[str, Any] = {"string": "something", "integer": 7, "number": 0.5, "boolean": True}
"""Maps each type to the careless selector's made-up value for arguments that the request lacks."""


@dataclass
class Shelf:
    """A toolbox without servers, whose catalogue can be replaced between turns."""

    last_catalogue: Catalogue
    output: str | None = None
    """Output of every call; None refuses calls."""

    async def catalogue(self, *, wait_for_all: bool = False, called: Collection[str] = ()) -> Catalogue:
        """Return the current catalogue."""
        return self.last_catalogue

    def health(self) -> tuple[ServerHealth, ...]:
        """Return an empty tuple, because there are no servers."""
        return ()

    async def call(self, tool_name: str, params: dict[str, Any], idempotency_key: str = "") -> ToolResult:
        """Return the output.

        Raises:
            CallRefusedError: there is no output.
        """
        if self.output is None:
            raise CallRefusedError(f"{tool_name} must not be called in this benchmark")
        return ToolResult(success=True, output=self.output)


async def needing_a_tool(packet: CognitionPacket, toolbox: Toolbox, context: RoutingContext) -> IntentDecision:
    """Detect the access of the request, and always decide that it needs a tool."""
    decision = await detect_by_reflex(packet, toolbox, context)
    return decision.model_copy(update={"needs_tool": True})


async def select_carelessly(packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext) -> Selection:
    """Call one of the first four tools of the palette, and make up arguments that the request lacks.

    The checksum of the request selects the tool, so the same request always calls the same tool.
    """
    text = packet.content.user_words
    offered = packet.context.palette[:4]
    spec = catalogue[offered[zlib.crc32(text.encode()) % len(offered)].tool_name]
    found = fill_parameters(spec, text)
    invented = {name: INVENTED.get(type_name(spec.parameters[name]), "something") for name in found.missing}
    return Selection(
        action="call",
        calls=(SelectedCall(tool_name=spec.name, params={**found.params, **invented}),),
        confidence=1.0,
        reasoning="why not",
        decided_by="model",
    )
