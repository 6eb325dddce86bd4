"""Conversations and their graph, in this process or on a LangGraph-API server."""

import asyncio
import gc
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass
from typing import Any, cast
from weakref import WeakValueDictionary

from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.pregel.protocol import PregelProtocol
from langgraph.store.base import BaseStore
from langgraph.types import Command, StateSnapshot
from pydantic import ValidationError

from packetgate.graph.building import LAST_STAGE
from packetgate.graph.journal.database import DatabaseJournal
from packetgate.graph.leases import Leases, NoLeases
from packetgate.graph.records import forget_records
from packetgate.models.options import ROLES
from packetgate.models.pool import ModelPool
from packetgate.nodes.select_tool import STAGE as SELECTING
from packetgate.state.context import RoutingContext
from packetgate.state.errors import PacketError, RequestError
from packetgate.state.events import StageEvent, read_event
from packetgate.state.packet import CognitionPacket, TurnInput
from packetgate.state.private_names import STRICT_RESUME
from packetgate.state.routing import ToolRouting
from packetgate.state.sections import Header, check_version
from packetgate.tools.attached.parts import take_files
from packetgate.tools.execution.call_log import interrupted_writes
from packetgate.tools.servers.hub import McpHub
from packetgate.tools.text.result_store import ResultStore

Given = TurnInput | Command[Any] | None
"""The input of a run: a new message, a reply, or None to continue a stopped turn."""

PAGE = 50
"""Checkpoints read at once: about five turns."""


@dataclass(frozen=True)
class AnswerPiece:
    """A piece of the answer, as it is written."""

    text: str


@dataclass(frozen=True)
class SessionState:
    """The state of a conversation."""

    packet: CognitionPacket
    """The last turn's; a blank one where there was none."""
    question: dict[str, Any] | None
    """The open question of the last turn."""
    is_unfinished: bool
    """Whether the last turn was interrupted: it neither ended nor asks."""
    interrupt_id: str = ""
    """LangGraph's id of the open question."""

    def may_go_on(self, rights: RoutingContext) -> bool:
        """Whether current rights still allow the waiting calls."""
        waiting = [call for call in (self.packet.tool_routing or ToolRouting()).calls if call.status.awaits_user]
        return rights.enabled and all(
            rights.allows(call.risk) and rights.allows_tool(call.tool_name) for call in waiting
        )

    @classmethod
    def of(cls, snapshot: StateSnapshot) -> "SessionState":
        """Read the state of a thread.

        Raises:
            PacketVersionError: another version of Packetgate wrote it.
            PacketError: it holds no packet.
        """
        values = snapshot.values or {}
        header = values.get("header")
        if header:
            check_version(header.version if isinstance(header, Header) else header.get("version", 0))
        asked = next((one for one in snapshot.interrupts if isinstance(one.value, dict)), None)
        question = dict(asked.value) if asked else None
        fields = {name: value for name, value in values.items() if name in CognitionPacket.model_fields}
        try:
            packet = CognitionPacket.model_validate(fields)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise PacketError(f"the stored session state is not a valid packet: {where}: {first['msg']}") from error
        is_open = bool(snapshot.next or snapshot.tasks)  # a stage's end is kept first, and then what comes next
        return cls(packet, question, is_open and question is None, asked.id if asked else "")


class Sessions:
    """The conversations that a graph of this process keeps, by name."""

    def __init__(
        self,
        graph: PregelProtocol[Any, Any, Any, Any],
        leases: Leases | None = None,
        journal: DatabaseJournal | None = None,
        kept: ResultStore | None = None,
        servers: McpHub | None = None,
        *,
        with_models: Callable[[ModelPool], PregelProtocol[Any, Any, Any, Any]] | None = None,
    ) -> None:
        """`leases` keep turns of other processes apart, `journal` is where the graph writes down what it does,
        pictures that users attach are `kept`, the tools are of these `servers`, and `with_models` makes the same graph
        with other models.
        """
        self.graph = graph
        self._leases = leases or NoLeases()
        self._journal = journal
        self._kept = kept
        self._servers = servers
        self._with_models = with_models
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def start_servers(self) -> None:
        """Start the servers of this process, before a turn needs their tools."""
        if self._servers is not None:
            self._servers.start()

    @property
    def starting(self) -> tuple[str, ...]:
        """The servers of this process that are starting now."""
        return self._servers.starting if self._servers is not None else ()

    async def use_models(self, models: ModelPool) -> None:
        """Load other models for the next turns, and release the old ones.

        Raises:
            ModelError: one cannot be used; the old ones stay.
            RequestError: the turns are not this process's.
        """
        if self._with_models is None:
            raise RequestError("the models are the server's: change them there")
        await models.check()
        for role in ROLES:
            await models.get(role)
        self.graph = self._with_models(models)
        gc.collect()  # an old GGUF may hold most of the memory

    def queue(self, session: str) -> asyncio.Lock:
        """Return the lock that queues this process's turns of a session."""
        return self._turns.setdefault(session, asyncio.Lock())

    async def is_leased(self, session: str) -> bool:
        """Whether another process runs a turn on a session."""
        return await self._leases.is_taken(session)

    def lease(self, session: str) -> AbstractAsyncContextManager[None]:
        """Keep other processes from running a turn on a session."""
        return self._leases.held(session)

    def config(self, session: str) -> RunnableConfig:
        """Return the configuration by which LangGraph finds a session's thread."""
        return {"configurable": {"thread_id": session, STRICT_RESUME: True}}

    async def state(self, session: str) -> SessionState:
        """Return the state of a session. Raise PacketError if the stored state is not a valid packet."""
        return SessionState.of(await self.graph.aget_state(self.config(session)))

    async def has_begun(self, packet: CognitionPacket) -> bool:
        """Whether an interrupted turn has started a call that may change something."""
        return bool(self._journal and await interrupted_writes(packet, self._journal))

    async def history(self, session: str) -> AsyncGenerator[StateSnapshot]:
        """Yield the states of a session, the newest first."""
        config, before = self.config(session), None
        while True:
            states = [one async for one in self.graph.aget_state_history(config, before=before, limit=PAGE)]
            for state in states:
                yield state
            if len(states) < PAGE:
                return
            before = states[-1].config

    async def newest(self) -> str:
        """Return the most recent session; empty if there is none."""
        checkpointer = getattr(self.graph, "checkpointer", None)
        if checkpointer is not None:
            async with aclosing(checkpointer.alist(None, limit=1)) as kept:
                async for one in kept:
                    return str(one.config["configurable"]["thread_id"])
        return ""

    async def stream(
        self, given: Given, session: str, context: RoutingContext
    ) -> AsyncGenerator[StageEvent | AnswerPiece]:
        """Run the graph on a session and yield its events. Closing the stream stops the run.

        Raises:
            RequestError: what is attached cannot be used; nothing was done.
        """
        if isinstance(given, TurnInput):
            given = await self._taken(given, session)
        async with aclosing(self._parts(given, session, context)) as parts:
            async for part in parts:
                if part["type"] == "custom":
                    event = _event(part["data"])
                    if event is not None:
                        yield event
                    continue
                message = _message(*part["data"])
                if message is not None and message.text:
                    yield AnswerPiece(message.text)

    async def _taken(self, given: TurnInput, session: str) -> TurnInput:
        messages, files = await asyncio.to_thread(take_files, given.messages, self._kept, session)
        return TurnInput(messages=messages, request=given.request.with_files(files)) if files else given

    def _parts(
        self, given: object, session: str, context: RoutingContext | dict[str, Any], **options: Any
    ) -> AsyncGenerator[Any]:
        how: dict[str, Any] = {"stream_mode": ["custom", "messages"], "durability": "sync", "version": "v2", **options}
        parts = self.graph.astream(given, self.config(session), context=context, **how)
        return cast("AsyncGenerator[Any]", parts)

    @property
    def store(self) -> BaseStore | None:
        """The store with the records of turns and prompts."""
        return getattr(self.graph, "store", None)

    async def forget(self, session: str) -> None:
        """Delete a session once no turn runs there.

        This removes the conversation, its records, and the details of its journal entries.
        """
        async with self.queue(session), self.lease(session):
            await self._delete(session)
            if self.store is not None:
                await forget_records(self.store, self.config(session)["configurable"]["thread_id"])
            if self._journal is not None:
                await self._journal.forget(session)

    async def _delete(self, session: str) -> None:
        checkpointer = getattr(self.graph, "checkpointer", None)
        if checkpointer is not None:
            await checkpointer.adelete_thread(session)


def _event(data: object) -> StageEvent | None:
    try:
        return read_event(data)
    except ValidationError:
        return None  # a newer server may tell more than is understood here


def _message(message: Any, metadata: dict[str, Any]) -> BaseMessage | None:
    if metadata.get("langgraph_node") not in {SELECTING, LAST_STAGE}:
        return None
    if isinstance(message, BaseMessage):
        return message if isinstance(message, AIMessageChunk) else None
    is_piece = message["type"] == AIMessageChunk.__name__
    return AIMessageChunk(content=message["content"], id=message.get("id")) if is_piece else None
