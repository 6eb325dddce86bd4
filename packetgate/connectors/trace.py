"""`packetgate trace`: find a past packet in the journal or in a session's checkpoints, and print it."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated

import typer
from langgraph.constants import START

from packetgate.connectors import rendering
from packetgate.connectors.options import AsJson, Url, settings_from
from packetgate.connectors.sessions import Sessions, SessionState
from packetgate.graph.settings import Settings
from packetgate.state.errors import PacketError, SessionError
from packetgate.state.packet import read_packet
from packetgate.state.printing import printable

LAST = "last"
_ID = re.compile("[0-9a-f]{8,32}")
_OPENING = {START, "open_packet"}
"""A checkpoint before one of these stages mixes the last turn's packet with the next turn's message."""


async def trace(
    packet: Annotated[
        str,
        typer.Argument(
            help="A packet id or its first 8 characters; `last`, also if it still waits; "
            "or a file that `ask --json` wrote."
        ),
    ] = LAST,
    session: Annotated[str | None, typer.Option("--session", "-s", help="Search only this session.")] = None,
    url: Url = None,
    as_json: AsJson = False,
) -> int:
    """Show a past packet's trace."""
    past = await _past(settings_from(url=url), packet, session)
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


async def _past(settings: Settings, packet_ref: str, session: str | None) -> SessionState:
    if session is None:
        try:
            data = await asyncio.to_thread(Path(packet_ref).read_bytes)
            return SessionState(read_packet(data), question=None, is_unfinished=False)
        except (FileNotFoundError, IsADirectoryError):
            pass  # it is an id
        except OSError as error:
            raise PacketError(f"{printable(packet_ref)[:200]}: cannot be read: {error.strerror}") from error
    if packet_ref != LAST and not _ID.fullmatch(packet_ref):
        raise PacketError(
            f"{printable(packet_ref)[:200]}: neither a file nor a packet id: give at least 8 characters of the id, or "
            "`last`"
        )
    async with open_archive(settings) as sessions:
        return await find_packet(sessions, packet_ref, session)


@asynccontextmanager
async def open_archive(settings: Settings) -> AsyncIterator[Sessions]:
    """Open the sessions of the server at `url`, or of this machine, without models and MCP servers.

    Raises:
        ConfigError: the database or the server cannot be used.
    """
    if settings.url:
        from packetgate.connectors.remote import open_remote, translated_errors
        from packetgate.models.transport import without_credentials

        async with open_remote(settings.url, settings.assistant) as remote:
            with translated_errors(without_credentials(settings.url)):
                yield remote
        return
    from packetgate.deciders.choosing import reflex_deciders
    from packetgate.graph.building import build_graph
    from packetgate.graph.journal import open_journal
    from packetgate.graph.storage import open_checkpointer
    from packetgate.toolsets.servers.hub import McpHub

    async with open_checkpointer(settings) as checkpointer:
        graph = build_graph(reflex_deciders(), McpHub([])).compile(checkpointer=checkpointer)
        yield Sessions(graph, journal=open_journal(settings))


async def find_packet(sessions: Sessions, packet_ref: str, session: str | None) -> SessionState:
    """Return the newest packet whose id begins with `packet_ref`, or the last packet, of one or of all sessions.

    Raises:
        PacketError, SessionError: no packet matches.
    """
    if packet_ref != LAST:
        name = session or await sessions.session_of(packet_ref)
        if not name:
            raise PacketError(f"no packet {packet_ref} is on record: check its id, or add --session NAME")
        return await _in_session(sessions, packet_ref, name)
    name = await sessions.newest() if session is None else session
    if not name:
        raise PacketError("no turn is on record yet: ask something with `packetgate ask`, or name a --session")
    state = await sessions.state(name)
    if not state.packet.content.original_prompt and state.packet.tool_routing is None:
        raise SessionError(f"session {name!r} has no turn: check its name, or it was reset")
    return state


async def _in_session(sessions: Sessions, packet_ref: str, session: str) -> SessionState:
    async for snapshot in sessions.history(session):
        header = (snapshot.values or {}).get("header")
        packet_id = header.get("packet_id", "") if isinstance(header, dict) else getattr(header, "packet_id", "")
        if str(packet_id).startswith(packet_ref) and not _OPENING & set(snapshot.next):
            return SessionState.from_snapshot(snapshot)
    raise PacketError(f"no packet {packet_ref[:8]} is stored in session {session!r}")
