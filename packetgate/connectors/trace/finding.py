"""Find a past packet in the record of turns or in a session's checkpoints, and print it."""

import asyncio
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langgraph.constants import START
from langgraph.store.base import BaseStore
from langgraph.types import StateSnapshot

from packetgate.connectors import rendering
from packetgate.connectors.sessions import Sessions, SessionState
from packetgate.graph.records import StagePrompts, read_prompts
from packetgate.graph.settings import Settings
from packetgate.state.errors import PacketError, SessionError
from packetgate.state.packet import CognitionPacket, read_packet
from packetgate.state.printing import printable
from packetgate.tools.usage.store import read_usage

LAST = "last"
_ID_LENGTH = 32
MIN_PREFIX = 8
"""Characters of an id in a printed trace, and minimum length of a prefix that finds a packet."""

_ID = re.compile(rf"[0-9a-f]{{{MIN_PREFIX},{_ID_LENGTH}}}")
_OPENING = {START, "open_packet"}
"""A checkpoint before one of these stages mixes the last turn's packet with the next turn's message."""


@dataclass(frozen=True)
class Archive:
    """Sessions and the records of their turns."""

    sessions: Sessions
    store: BaseStore


@dataclass(frozen=True)
class PastPacket:
    """A past packet with its open question and the prompts that were sent to models."""

    packet: CognitionPacket
    question: dict[str, Any] | None = None
    prompts: tuple[StagePrompts, ...] = ()


@asynccontextmanager
async def open_archive(settings: Settings) -> AsyncIterator[Archive]:
    """Open the sessions and records of the server at `url`, or of this machine, without models and MCP servers.

    Raises:
        ConfigError: the database or the server cannot be used.
    """
    if settings.url:
        from packetgate.connectors.remote import open_remote, translated_errors
        from packetgate.models.endpoint import without_credentials

        async with open_remote(settings.url, settings.assistant) as remote:
            with translated_errors(without_credentials(settings.url)):
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
    """Whether a text is a packet id or a prefix that is long enough."""
    return _ID.fullmatch(text) is not None


async def find_packet(archive: Archive, packet_ref: str, session: str | None) -> PastPacket:
    """Return the packet with an id or id prefix, or the last packet, of one session or of all sessions.

    Raises:
        PacketError, SessionError: no packet or several packets match.
    """
    if packet_ref == LAST:
        state = await _last(archive, session)
    else:
        packet_id, session = (packet_ref, session) if session is not None else await _recorded(archive, packet_ref)
        state = await _in_session(archive, packet_id, session)
    header = state.packet.header
    return PastPacket(
        state.packet, state.question, await read_prompts(archive.store, header.session_id, header.packet_id)
    )


async def _last(archive: Archive, session: str | None) -> SessionState:
    name = await archive.sessions.newest() if session is None else session
    if not name:
        raise PacketError("no turn is on record yet: ask something with `packetgate ask`, or name a --session")
    state = await archive.sessions.state(name)
    if not state.packet.content.original_prompt and state.packet.tool_routing is None:
        raise SessionError(f"session {name!r} has no turn: check its name, or it was reset")
    return state


async def _recorded(archive: Archive, packet_ref: str) -> tuple[str, str]:
    records = (await read_usage(archive.store)).records
    sessions = {record.packet_id: record.session_id for record in records if record.packet_id.startswith(packet_ref)}
    if not sessions:
        raise PacketError(f"no packet {packet_ref} is on record; if it still waits for an answer, add --session NAME")
    packet_id = _only(packet_ref, sessions)
    return packet_id, sessions[packet_id]


async def _in_session(archive: Archive, packet_ref: str, session: str) -> SessionState:
    snapshots: dict[str, StateSnapshot] = {}
    async for snapshot in archive.sessions.history(session):
        packet_id = _packet_id(snapshot)
        if not packet_id.startswith(packet_ref) or _OPENING & set(snapshot.next):
            continue
        snapshots.setdefault(packet_id, snapshot)
        if packet_id == packet_ref:
            return SessionState.from_snapshot(snapshots[packet_id])
    if not snapshots:
        raise PacketError(f"no packet {packet_ref[:MIN_PREFIX]} is stored in session {session!r}")
    return SessionState.from_snapshot(snapshots[_only(packet_ref, snapshots)])


def _only(packet_ref: str, matches: dict[str, Any]) -> str:
    if len(matches) > 1:
        raise PacketError(
            f"{len(matches)} packets begin with {packet_ref}: {', '.join([*matches][:3])}; give more of the id"
        )
    return next(iter(matches))


def _packet_id(snapshot: StateSnapshot) -> str:
    header = (snapshot.values or {}).get("header")
    return str(header.get("packet_id", "") if isinstance(header, dict) else getattr(header, "packet_id", ""))


async def show(settings: Settings, packet_ref: str, session: str | None, *, prompts: bool, as_json: bool) -> int:
    """Print a packet's trace or its JSON, and with `prompts` also the prompts that were sent to models.

    Raises:
        PacketError, SessionError: there is no such packet.
        ConfigError: the database or the server cannot be used.
    """
    past = await _past(settings, packet_ref, session)
    if as_json:
        sys.stdout.write(past.packet.model_dump_json(indent=2) + "\n")
        return 0
    out = rendering.console()
    out.print(rendering.safe_text(past.packet.content.original_prompt, "bold"))
    if past.packet.response.candidate:
        out.print(rendering.safe_text(past.packet.response.candidate))
    if past.question is not None:
        out.print(rendering.question(past.question))
    out.print()
    out.print(rendering.trace_table(past.packet))
    if prompts:
        _show_prompts(past)
    return 0


def _show_prompts(past: PastPacket) -> None:
    if not past.prompts:
        rendering.say("no prompts are stored for this packet (PACKETGATE_PROMPT_DAYS)")
    for stage in past.prompts:
        for request in stage.exchanges:
            rendering.say(f"\n{stage.stage}: {stage.role} model {request.model}, {request.duration_ms:.0f} ms", "bold")
            sent = [(message.role, message.text) for message in request.messages]
            for role, text in [*sent, ("answer", request.answer), ("error", request.error)]:
                if text:
                    rendering.say(f"[{role}]\n{text}", "")


async def _past(settings: Settings, packet_ref: str, session: str | None) -> PastPacket:
    if session is None and (packet_ref == "-" or await asyncio.to_thread(_is_file, packet_ref)):
        return PastPacket(read_packet(await asyncio.to_thread(_read, packet_ref)))
    if packet_ref != LAST and not is_packet_id(packet_ref):
        raise PacketError(
            f"{printable(packet_ref)[:200]}: neither a file nor a packet id: give at least {MIN_PREFIX} characters of "
            "the id, or `last`"
        )
    async with open_archive(settings) as archive:
        return await find_packet(archive, packet_ref, session)


def _is_file(path: str) -> bool:
    try:
        return Path(path).exists() and not Path(path).is_dir()
    except OSError:  # a name that is too long
        return False


def _read(path: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise PacketError(f"{path}: cannot be read: {error.strerror}") from error
