"""Choose the few tools this turn may use."""

import asyncio

from langgraph.runtime import Runtime

from state.context import RoutingContext, routing_context
from state.packet import CognitionPacket, PacketUpdate
from state.sections import Reflection, StageError
from tools.palette import PaletteRequest, choose_palette
from tools.toolbox import Toolbox

STAGE = "build_palette"


async def build_palette(packet: CognitionPacket, runtime: Runtime[RoutingContext], *, toolbox: Toolbox) -> PacketUpdate:
    """Replace the palette; it is chosen from the user's words alone."""
    context, routing = routing_context(runtime.context), packet.routing
    catalogue = await toolbox.catalogue()
    palette = await asyncio.to_thread(
        choose_palette,
        PaletteRequest(
            words=packet.content.user_words,
            access=packet.intent.access,
            size=context.palette_size,
            token_budget=context.palette_token_budget,
            recent=packet.context.recent_tools,
            described=routing.described_tools,
            missed=routing.missed_tools,
        ),
        catalogue,
    )
    servers = toolbox.health()
    problems = [StageError(stage=STAGE, message=f"{one.name}: {one.problem}") for one in servers if one.problem]
    waiting = [
        StageError(stage=STAGE, message=f"{one.name}: still starting") for one in servers if one.state == "connecting"
    ]
    names = ", ".join(entry.tool_name for entry in palette[:4])
    return {
        "context": packet.context.model_copy(
            update={"available_mcp_tools": tuple(catalogue), "servers": servers, "palette": palette}
        ),
        "metrics": packet.metrics.failed(*problems, *waiting),
        "reasoning": packet.reasoning.noted(
            Reflection(
                step=STAGE,
                summary=f"{len(palette)} of {len(catalogue)} tools: {names}{', …' if len(palette) > 4 else ''}"
                if palette
                else "no tool is there to choose from",
            )
        ),
    }
