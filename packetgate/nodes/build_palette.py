"""Choose the few tools that this turn may use."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import islice

from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore

from packetgate.deciders.choosing import palette_measure
from packetgate.models.pool import ModelSource
from packetgate.ranking.choice import Palette, PaletteRequest, ranked_palette, whole_palette
from packetgate.ranking.learning import LearnedUses
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket, PacketUpdate
from packetgate.state.printing import counted
from packetgate.state.sections import MAX_NAMED_TOOLS, PaletteEntry
from packetgate.tools.catalogue.toolbox import Toolbox
from packetgate.tools.text.result_store import HANDLE_PREFIX, READ_TOOL

_STAGE = "build_palette"
RECENT_MESSAGES = 4

LearnedSource = Callable[[CognitionPacket, BaseStore | None], Awaitable[LearnedUses | None]]
"""Returns the uses that the ranking learned from the user's confirmed calls."""


async def build_palette(
    packet: CognitionPacket,
    runtime: Runtime[RoutingContext],
    *,
    lite: ModelSource | None,
    toolbox: Toolbox,
    learned: LearnedSource | None = None,
) -> PacketUpdate:
    """Replace the palette. Only the user's own words decide which tools it contains."""
    settings, routing = packet.governance.settings, packet.routing
    if packet.content.command is not None:
        return await _command_palette(packet, packet.content.command.tool_name, toolbox)
    guarded = routing.reinjection_count > 0
    # only tools of earlier turns: a tool of this turn would change the beginning of the prompt
    used_now = {call.tool_name for call in routing.all_calls}
    before = {entry.tool_name for entry in packet.context.palette if entry.reason == "recent"}
    recent = tuple(name for name in packet.context.recent_tools if name not in used_now - before)
    catalogue = await toolbox.catalogue(wait_for_all=routing.palette_widened)
    counter, text = await palette_measure(lite)
    request = PaletteRequest(
        words=packet.content.user_words,
        access=packet.intent.access,
        size=settings.palette_size,
        token_budget=settings.palette_token_budget,
        context_type=packet.context.context_type,
        person=packet.header.person,
        subject=packet.context.subject,
        recent=recent,
        offered=packet.context.offered_tools,
        described=routing.described_tools,
        missed=routing.missed_tools,
        seen=packet.context.palette_names if routing.palette_widened and not guarded else (),
        guarded=guarded,
        tokens=counter,
        text=text,
    )
    palette = await asyncio.to_thread(whole_palette, request, catalogue)
    if palette is None:  # only a choice needs learned uses
        request = replace(request, learned=await learned(packet, runtime.store) if learned else None)
        palette = await asyncio.to_thread(ranked_palette, request, catalogue)
    servers = toolbox.health()
    context = packet.context.changed(
        palette=palette.entries,
        palette_tokens=palette.tokens,
        palette_left_out=palette.left_out,
        available_mcp_tools=tuple(islice(catalogue, MAX_NAMED_TOOLS)),
        available_more=max(0, len(catalogue) - MAX_NAMED_TOOLS),
        servers=servers,
        subject=tuple(sorted(palette.subject_terms)) or packet.context.subject,
    )
    handles = [call.result.handle for call in routing.all_calls if call.result]
    texts = handles + [message.text for message in packet.conversation[-RECENT_MESSAGES:]]
    if READ_TOOL in catalogue and any(HANDLE_PREFIX in text for text in texts):
        context = context.with_tool(
            PaletteEntry(tool_name=READ_TOOL, detail="full", reason="kept", risk=catalogue[READ_TOOL].risk)
        )
    summary = _summary(palette, len(catalogue), exact=counter.is_exact)
    return {
        "context": context,
        "metrics": packet.metrics.with_server_problems(_STAGE, servers),
        "reasoning": packet.reasoning.with_summary(_STAGE, summary),
    }


async def _command_palette(packet: CognitionPacket, tool_name: str, toolbox: Toolbox) -> PacketUpdate:
    """Return the palette of a typed command: its tool alone. No model measures it."""
    catalogue = await toolbox.catalogue()
    spec = catalogue.get(tool_name)
    entries = [PaletteEntry(tool_name=tool_name, detail="name", reason="command", risk=spec.risk)] if spec else []
    context = packet.context.changed(palette=tuple(entries), servers=toolbox.health())
    return {"context": context, "reasoning": packet.reasoning.with_summary(_STAGE, f"the command's: {tool_name}")}


def _summary(palette: Palette, tool_count: int, *, exact: bool) -> str:
    if not palette.entries:
        return "no tools are available"
    names = [entry.tool_name for entry in palette.entries]
    listed_names = ", ".join(names if len(names) <= 4 else [*names[:4], "…"])
    tokens = f"{palette.tokens:,} tokens" if exact else f"about {palette.tokens:,} tokens"
    note = palette.note and f"; {palette.note}"
    return f"{len(palette.entries)} of {counted(tool_count, 'tool')}, {tokens}: {listed_names}{note}"
