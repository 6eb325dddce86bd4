"""`packetgate trace`: find a past packet in the record of turns, and in the checkpoints of its session."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from langgraph.constants import START
from langgraph.store.base import BaseStore
from langgraph.types import StateSnapshot

from packetgate.connectors.sessions import Sessions, SessionState
from packetgate.graph.records.prompts import StagePrompts, read_prompts, recorded_turns
from packetgate.graph.settings import Settings
from packetgate.state.errors import PacketError, SessionError
from packetgate.state.packet import CognitionPacket
from packetgate.tools.usage.record import UsageRecord
from packetgate.tools.usage.store import read_usage

LAST = "last"
ID_LENGTH = 32
SHORTEST = 8
"""Characters of an id that a trace shows."""
NEAREST = 3

_ID = re.compile(rf"[0-9a-f]{{{SHORTEST},{ID_LENGTH}}}")
_OPENING = {START, "open_packet"}
"""A state before one of these stages mixes the last turn's packet with the next turn's message."""


@dataclass(frozen=True)
class Archive:
    """Sessions and the records of their turns."""

    sessions: Sessions
    store: BaseStore


@dataclass(frozen=True)
class Past:
    """A past packet with its question and prompts."""

    packet: CognitionPacket
    question: dict[str, Any] | None = None
    """Its open question."""
    prompts: tuple[StagePrompts, ...] | None = None
    """The prompts of its stages; None if they were not looked up."""


@asynccontextmanager
async def open_archive(settings: Settings) -> AsyncIterator[Archive]:
    """Open the sessions and records of the server at `url`, or of this machine, without models and MCP servers.

    Raises:
        ConfigError: it cannot be opened, or the server cannot be used.
    """
    if settings.url:
        from packetgate.connectors.remote import open_remote, translated_errors
        from packetgate.models.endpoint import shown

        async with open_remote(settings.url, settings.assistant) as remote:
            with translated_errors(shown(settings.url)):
                yield Archive(remote, remote.store)
        return
    from packetgate.deciders.choosing import reflex_deciders
    from packetgate.graph.building import build_graph
    from packetgate.graph.storage import open_checkpointer, open_store
    from packetgate.tools.servers.hub import McpHub

    async with open_checkpointer(settings) as checkpointer, open_store(settings) as store:
        graph = build_graph(reflex_deciders(), McpHub([])).compile(checkpointer=checkpointer, store=store)
        yield Archive(Sessions(graph), store)


def is_packet_id(text: str) -> bool:
    """Whether this is an id or a sufficient prefix."""
    return _ID.fullmatch(text) is not None


async def find(archive: Archive, wanted: str, session: str | None) -> Past:
    """Return the packet of an id, or the last one, of one session or of all.

    Raises:
        PacketError, SessionError: there is none, or several begin like this.
    """
    if session is not None:
        state = await (_last_of(archive, session) if wanted == LAST else _in_session(archive, wanted, session))
    else:
        state = await _recorded(archive, wanted)
    header = state.packet.header
    prompts = await read_prompts(archive.store, header.session_id, header.packet_id)
    return Past(state.packet, state.question, prompts)


async def _recorded(archive: Archive, wanted: str) -> SessionState:
    if wanted == LAST:
        session = await archive.sessions.newest()
        if not session:
            raise PacketError("no turn is on record yet: ask something with `packetgate ask`, or name a --session")
        return await _last_of(archive, session)
    records = (await read_usage(archive.store)).records
    known = {record.packet_id: record.session_id for record in records}
    known |= {packet: session for session, packet in await recorded_turns(archive.store)}
    fitting = {packet: session for packet, session in known.items() if packet.startswith(wanted)}
    if not fitting:
        raise PacketError(
            f"no packet {wanted} is on record{_nearest(records)}; one that still waits, or was never recorded, "
            "is found with --session NAME"
        )
    _check_single(wanted, list(fitting))
    ((packet_id, session_id),) = fitting.items()
    return await _in_session(archive, packet_id, session_id)


async def _last_of(archive: Archive, session: str) -> SessionState:
    state = await archive.sessions.state(session)
    if not state.packet.content.original_prompt and state.packet.tool_routing is None:
        raise SessionError(f"session {session!r} has no turn: its name may be another, or it was reset")
    return state


async def _in_session(archive: Archive, wanted: str, session: str) -> SessionState:
    found: dict[str, StateSnapshot] = {}
    others: dict[str, None] = {}
    async for snapshot in archive.sessions.history(session):
        packet_id = _packet_id(snapshot)
        if not packet_id or _OPENING & set(snapshot.next):
            continue
        if packet_id.startswith(wanted):
            found.setdefault(packet_id, snapshot)
            if packet_id == wanted:
                break
        else:
            others[packet_id] = None
    if not found:
        there = ", ".join(one[:SHORTEST] for one in list(others)[:NEAREST])
        near = f": its latest are {there}" if there else ", which has no turn: its name may be another, or it was reset"
        raise PacketError(f"no packet {wanted[:SHORTEST]} is kept in session {session!r}{near}")
    _check_single(wanted, list(found))
    return SessionState.of(next(iter(found.values())))


def _check_single(wanted: str, found: list[str]) -> None:
    if len(found) > 1:
        raise PacketError(
            f"{len(found)} packets begin with {wanted}: {', '.join(found[:NEAREST])}; give more of the id"
        )


def _nearest(records: tuple[UsageRecord, ...]) -> str:
    latest = [f"{one.packet_id[:SHORTEST]} ({' '.join(one.asked.split())[:40]!r})" for one in reversed(records)]
    return f"; the latest are {', '.join(latest[:NEAREST])}" if latest else ""


def _packet_id(snapshot: StateSnapshot) -> str:
    header = (snapshot.values or {}).get("header")
    return str(header.get("packet_id", "") if isinstance(header, dict) else getattr(header, "packet_id", ""))
