"""`packetgate trace`: find a past packet in a session's checkpoints, and print its trace."""

import re
from contextlib import aclosing
from typing import Annotated

import typer
from langgraph.constants import START

from packetgate.connectors import rendering
from packetgate.connectors.opening import open_records
from packetgate.connectors.options import AsJson, settings_from
from packetgate.connectors.sessions import SessionState
from packetgate.graph.journal import open_journal
from packetgate.graph.settings import Settings
from packetgate.state.errors import PacketError
from packetgate.state.printing import printable

LAST = "last"
_ID = re.compile("[0-9a-f]{8,32}")
_OPENING = {START, "open_packet"}
"""A checkpoint before one of these stages mixes the last turn's packet with the next turn's message."""


async def trace(
    packet: Annotated[
        str, typer.Argument(help="A packet id or its first 8 characters, or `last` for the last packet.")
    ] = LAST,
    session: Annotated[str | None, typer.Option("--session", "-s", help="Search only this session.")] = None,
    as_json: AsJson = False,
) -> int:
    """Show a past packet's trace."""
    past = await find_packet(settings_from(), packet, session)
    if as_json:
        rendering.write_json(past.packet)
        return 0
    out = rendering.console()
    out.print(rendering.safe_text(past.packet.content.original_prompt, "bold"))
    if past.packet.response.candidate:
        out.print(rendering.safe_text(past.packet.response.candidate))
    if past.question is not None:
        out.print(rendering.question(past.question))
    out.print()
    out.print(rendering.trace_table(past.packet))
    return 0


async def find_packet(settings: Settings, packet_ref: str, session: str | None) -> SessionState:
    """Return the newest packet whose id begins with `packet_ref`, or the last packet, of one or of all sessions.

    Neither models nor MCP servers are opened.

    Raises:
        PacketError: no packet matches.
    """
    if packet_ref != LAST and not _ID.fullmatch(packet_ref):
        shown = printable(packet_ref)[:200]
        raise PacketError(f"{shown} is not a packet id: give at least 8 characters of the id, or `last`")
    async with open_records(settings) as sessions:
        if session is None and packet_ref == LAST:
            session = await sessions.newest()
        elif session is None:
            session = await open_journal(settings).session_of(packet_ref)
        if session and packet_ref == LAST:
            state = await sessions.state(session)
            if state.packet.content.original_prompt or state.packet.tool_routing is not None:
                return state
        elif session:
            async with aclosing(sessions.history(session)) as snapshots:
                async for snapshot in snapshots:
                    state = SessionState.from_snapshot(snapshot)
                    if state.packet.header.packet_id.startswith(packet_ref) and not _OPENING & set(snapshot.next):
                        return state
    where = f" in session {session!r}" if session else ": ask something with `packetgate ask`, or name a --session"
    raise PacketError(f"no packet {'' if packet_ref == LAST else f'{packet_ref[:8]} '}is on record{where}")
