"""Sessions of a graph: their state, history and runs."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast
from weakref import WeakValueDictionary

from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.runnables import RunnableConfig
from langgraph.errors import UnknownInterruptError
from langgraph.pregel.protocol import PregelProtocol
from langgraph.store.base import BaseStore
from langgraph.types import Command, Interrupt, StateSnapshot
from pydantic import ValidationError

from packetgate.deciders.protocols import ModelWarmer
from packetgate.gate.journal import interrupted_writes
from packetgate.graph.building import LAST_STAGE
from packetgate.graph.journal import DatabaseJournal
from packetgate.graph.leases import Leases
from packetgate.graph.records import forget_records
from packetgate.state.base import now
from packetgate.state.codes import Code
from packetgate.state.context import RoutingContext
from packetgate.state.errors import PacketError, SessionError
from packetgate.state.events import StageEvent, StageStarted, read_event
from packetgate.state.packet import CognitionPacket, TurnInput
from packetgate.state.private_names import STRICT_RESUME
from packetgate.state.routing import ToolRouting
from packetgate.state.sections import Header, PacketState, check_version
from packetgate.tools.attached.parts import extract_files
from packetgate.tools.catalogue.toolbox import AllowedTools
from packetgate.tools.text.result_store import ResultStore
from packetgate.toolsets.builtin.undo_store import UndoStore
from packetgate.toolsets.servers.hub import McpHub

RunInput = TurnInput | Command[Any] | None
"""A new message, a reply, or None to continue an interrupted turn."""
HELD_CHARS = 300
"""Longest text of a selection that is held back."""
PAGE = 50
"""Checkpoints read at once: about five turns."""


@dataclass(frozen=True)
class AnswerPiece:
    """A streamed piece of the answer, or of a model's text before a call."""

    text: str
    message_id: str = ""
    """Pieces of one message have the same id."""


class ShownText:
    """The text of a turn that its reader has seen. Text before a call is kept; the answer is a paragraph after it."""

    def __init__(self, withdrawn: str) -> None:
        """`withdrawn`: a note between the beginning of an interrupted answer and the answer that replaces it."""
        self._withdrawn = withdrawn
        self.text = ""
        self._message_id = self._message = ""  # the message that the answer may continue
        self._answers = False

    def start_stage(self, stage: str) -> None:
        """Note the start of a stage: text that no answer follows preceded a call."""
        self._answers = self._answers or stage == LAST_STAGE
        if not self._answers:
            self._message = ""

    def add(self, piece: AnswerPiece) -> str:
        """Return the text to show for a piece."""
        text = piece.text
        if piece.message_id != self._message_id:
            self._message_id, self._message = piece.message_id, ""
            text = f"\n\n{text}" if self.text else text
        self._message += piece.text
        self.text += text
        return text

    def rest(self, answer: str) -> str:
        """Return the part of the complete answer that is still to be shown."""
        if not self._message:
            return f"\n\n{answer}" if self.text else answer
        if answer.startswith(self._message.rstrip()):
            return answer[len(self._message) :]
        return self._withdrawn + answer


@dataclass(frozen=True)
class SessionState:
    """The state of a session: the packet of the last turn (blank without a turn), and the open question."""

    packet: CognitionPacket
    question: dict[str, Any] | None
    is_unfinished: bool
    """Whether the last turn was interrupted: it has not ended and has no open question."""
    interrupt_id: str = ""
    """LangGraph's id of the open question."""

    def still_allows_calls(self, rights: RoutingContext) -> bool:
        """Whether current rights still allow the waiting calls."""
        calls = (self.packet.tool_routing or ToolRouting()).calls
        return rights.enabled and all(
            rights.allows(call.risk) and rights.allows_tool(call.tool_name) for call in calls if call.status.awaits_user
        )

    @classmethod
    def from_snapshot(cls, snapshot: StateSnapshot) -> "SessionState":
        """Read the state of a thread. Raise PacketVersionError or PacketError if it contains no packet of this
        version."""
        values = snapshot.values or {}
        header = values.get("header")
        if header:
            check_version(header.version if isinstance(header, Header) else header.get("version", 0))
        interrupt = next(iter(snapshot.interrupts), None)
        question = question_of(interrupt) if interrupt else None
        try:
            packet = CognitionPacket.model_validate(values)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise PacketError(f"the stored session state is not a valid packet: {where}: {first['msg']}") from error
        is_open = bool(snapshot.next or snapshot.tasks)
        return cls(packet, question, is_open and question is None, interrupt.id if interrupt else "")


def question_of(interrupt: Interrupt) -> dict[str, Any]:
    """Return the question of an interrupt: Packetgate's own, or that of a tool, which any value answers."""
    value = interrupt.value
    if isinstance(value, dict) and "question_id" in value:
        return dict(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return {"kind": "question", "question": text, "question_id": interrupt.id, "value": value}


def expiry_of(question: Mapping[str, Any]) -> datetime | None:
    """Return when a question expires, or None."""
    written = question.get("expires_at")
    return datetime.fromisoformat(written) if isinstance(written, str) else None


def has_expired(question: Mapping[str, Any]) -> bool:
    """Whether a question has expired."""
    expiry = expiry_of(question)
    return expiry is not None and now() > expiry


class Sessions:
    """The sessions of a graph in this process, by name."""

    def __init__(
        self,
        graph: PregelProtocol[Any, Any, Any, Any],
        leases: Leases | None = None,
        journal: DatabaseJournal | None = None,
        results: ResultStore | None = None,
        servers: McpHub | None = None,
        undo: UndoStore | None = None,
        warm: ModelWarmer | None = None,
        *,
        holds_text: bool = True,
    ) -> None:
        """Create the sessions.

        Args:
            results: stores attached images.
            undo: stores replaced contents.
            warm: prepares the models for the first turn.
            holds_text: whether text before a call is omitted, for readers that cannot remove shown text.
        """
        self._holds_text = holds_text
        self.graph = graph
        self._leases = leases or Leases()
        self._journal = journal
        self._results = results
        self._servers = servers
        self._undo = undo
        self._warm = warm
        self._warming: asyncio.Task[None] | None = None
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self.note_end: Callable[[str, dict[str, Any] | None, RoutingContext], Awaitable[None]] | None = None
        """Takes the session, the open question and the settings of each turn that ended here; see `RecordedAnswers`."""
        self.run_answer: Callable[[str, Any, RoutingContext], Awaitable[None]] | None = None
        """Runs an answer that another process recorded, for a connector that shows the end of the turn."""
        self.use_model: Callable[[str], Awaitable[None]] | None = None
        """Makes a model play both roles in later turns; an empty name restores the models of the settings.

        Raises ModelError if the model is not available.
        """

    def start(self, context: RoutingContext, channel: str) -> None:
        """Start the MCP servers, and then prepare the models, in the background, before a turn needs them."""
        servers, warm = self._servers, self._warm
        if servers is None:
            return
        servers.start()

        async def prepare(warm: ModelWarmer) -> None:
            await servers.settle()
            await warm(AllowedTools(servers, context, channel), context)

        if warm is not None:
            self._warming = asyncio.create_task(prepare(warm))

    async def stop(self) -> None:
        """Stop the preparation of the models."""
        if self._warming is not None:
            self._warming.cancel()
            await asyncio.wait([self._warming])

    @property
    def starting(self) -> tuple[str, ...]:
        """The MCP servers that are starting."""
        return self._servers.starting if self._servers is not None else ()

    def toolbox(self, context: RoutingContext, channel: str) -> AllowedTools:
        """Return the tools of a turn with these settings. Raise ValueError without servers of this process."""
        if self._servers is None:
            raise ValueError("these sessions have no servers")
        return AllowedTools(self._servers, context, channel)

    def queue(self, session: str) -> asyncio.Lock:
        """Return the lock that queues this process's turns of a session."""
        return self._turns.setdefault(session, asyncio.Lock())

    async def is_leased(self, session: str) -> bool:
        """Whether another process runs a turn on a session."""
        return await self._leases.is_taken(session)

    def lease(self, session: str) -> AbstractAsyncContextManager[None]:
        """Hold the lock that keeps other processes from running a turn on a session."""
        return self._leases.hold(session)

    def config(self, session: str) -> RunnableConfig:
        """Return the configuration by which LangGraph finds a session's thread."""
        return {"configurable": {"thread_id": session, STRICT_RESUME: True}}

    async def state(self, session: str) -> SessionState:
        """Return the state of a session. Raise PacketError if the stored state is not a valid packet."""
        return SessionState.from_snapshot(await self.graph.aget_state(self.config(session)))

    async def has_started_write(self, packet: CognitionPacket) -> bool:
        """Whether an interrupted turn has started a write."""
        calls = packet.tool_routing.calls if packet.tool_routing else ()
        return bool(self._journal and await interrupted_writes(calls, packet.header, self._journal))

    async def history(self, session: str) -> AsyncGenerator[StateSnapshot]:
        """Yield a session's checkpoints, the newest first."""
        config, before = self.config(session), None
        while True:
            page = [one async for one in self.graph.aget_state_history(config, before=before, limit=PAGE)]
            for snapshot in page:
                yield snapshot
            if len(page) < PAGE:
                return
            before = page[-1].config

    async def branch(self, session: str, packet_id: str, new_session: str, person: str) -> None:
        """Copy a session as it was after a turn to a new session, in which `person` continues it.

        An open question is not copied: if the turn has not ended, the copy ends with the last ended turn before it.
        """
        is_reached = False
        async with aclosing(self.history(session)) as snapshots:
            async for snapshot in snapshots:
                packet = SessionState.from_snapshot(snapshot).packet
                is_reached = is_reached or packet.header.packet_id == packet_id
                has_ended = packet.status.state is PacketState.COMPLETED and isinstance(packet.messages[-1], AIMessage)
                if is_reached and has_ended:
                    copy = packet.continued_by(person)
                    values = {name: getattr(copy, name) for name in CognitionPacket.model_fields}
                    await self.graph.aupdate_state(self.config(new_session), values, as_node=LAST_STAGE)
                    return

    async def stream(
        self, run_input: RunInput, session: str, context: RoutingContext
    ) -> AsyncGenerator[StageEvent | AnswerPiece]:
        """Run the graph on a session and yield its events. Raise RequestError for an unusable attachment."""
        if isinstance(run_input, TurnInput):
            messages, files = await asyncio.to_thread(extract_files, run_input.messages, self._results, session)
            if files:
                run_input = TurnInput(messages=messages, request=run_input.request.with_files(files))
        options: dict[str, Any] = {"stream_mode": ["custom", "messages"], "durability": "sync", "version": "v2"}
        stream = self.graph.astream(run_input, self.config(session), context=context, **options)
        try:
            async with aclosing(cast("AsyncGenerator[Any]", stream)) as parts:
                events = _events(parts)
                async for event in _without_words_before_calls(events) if self._holds_text else events:
                    yield event
        except UnknownInterruptError as error:
            raise already_answered_error(session) from error

    async def newest(self) -> str:
        """Return the session that changed last; empty if there is none."""
        checkpointer = getattr(self.graph, "checkpointer", None)
        points = [] if checkpointer is None else [point async for point in checkpointer.alist(None, limit=1)]
        return str(points[0].config["configurable"]["thread_id"]) if points else ""

    @property
    def store(self) -> BaseStore | None:
        """The store of lessons from turns."""
        return getattr(self.graph, "store", None)

    async def forget(self, session: str) -> None:
        """Delete a session, its records, undo data and details of journal entries, once no turn runs there."""
        async with self.queue(session), self.lease(session):
            checkpointer = getattr(self.graph, "checkpointer", None)
            if checkpointer is not None:
                await checkpointer.adelete_thread(session)
            if self.store is not None:
                await forget_records(self.store, session)
            if self._journal is not None:
                await self._journal.forget(session)
            if self._undo is not None:
                await asyncio.to_thread(self._undo.forget, session)


def already_answered_error(session: str) -> SessionError:
    """Return the error for an answer to a question that is already answered."""
    message = f"the question of session {session!r} was already answered in another place: this answer was not used"
    return SessionError(message, Code.QUESTION_NOT_OPEN)


async def _events(parts: AsyncGenerator[Any]) -> AsyncGenerator[StageEvent | AnswerPiece]:
    async for part in parts:
        event = _event(part["data"]) if part["type"] == "custom" else _answer_piece(*part["data"])
        if event is not None:
            yield event


async def _without_words_before_calls(
    events: AsyncGenerator[StageEvent | AnswerPiece],
) -> AsyncGenerator[StageEvent | AnswerPiece]:
    """Hold back the text of a selection until it is long or is the answer: a following call may not run."""
    held, is_shown = AnswerPiece(""), False
    async for event in events:
        if isinstance(event, AnswerPiece) and not is_shown:
            text = held.text + event.text if event.message_id == held.message_id else event.text
            held = AnswerPiece(text, event.message_id)
            if len(text) <= HELD_CHARS:
                continue
            event, is_shown = held, True  # noqa: PLW2901
        elif isinstance(event, StageStarted):
            is_shown = event.stage == LAST_STAGE
            if is_shown and held.text:
                yield held
            held = AnswerPiece("")
        yield event


def _event(data: object) -> StageEvent | None:
    try:
        return read_event(data)
    except ValidationError:
        return None  # an event of a newer version


def _answer_piece(message: Any, metadata: dict[str, Any]) -> AnswerPiece | None:
    if metadata.get("langgraph_node") not in {"select_tool", LAST_STAGE}:
        return None
    return AnswerPiece(message.text, message.id or "") if isinstance(message, AIMessageChunk) and message.text else None
