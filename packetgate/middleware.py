"""Packetgate as middleware of LangChain's `create_agent`: which tools the model sees, and which of its calls run."""

import asyncio
import contextvars
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain.agents.middleware.types import PrivateStateAttr, ToolCallRequest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.messages import ToolCall as AgentCall
from langchain_core.tools import BaseTool
from langgraph.config import get_config
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import Runtime
from langgraph.types import Command, interrupt

from packetgate.deciders.reflex.reading import access_of
from packetgate.graph.event_loops import LoopThread
from packetgate.graph.journal.database import journal_at
from packetgate.graph.pipeline import Pipeline, Wanted
from packetgate.state.base import ms_since
from packetgate.state.context import RoutingContext, routing_context
from packetgate.state.errors import CallRefusedError, ConfigError, RequestError
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import Risk, ToolCall, ToolResult
from packetgate.state.sections import (
    Content,
    Context,
    Governance,
    Header,
    PacketState,
    PaletteEntry,
    ServerHealth,
    Status,
)
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.approval.decisions import TAKEN
from packetgate.tools.approval.questions import payload
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.preferences import Preferences, load_preferences
from packetgate.tools.execution.journal import MemoryJournal
from packetgate.tools.palette.candidates import PaletteRequest
from packetgate.tools.palette.choice import choose_palette, with_recent
from packetgate.tools.risk.call import judge_call
from packetgate.tools.servers.functions import as_tool, spec_of_tool
from packetgate.tools.servers.results import to_result_async
from packetgate.tools.spec.descriptions import SEPARATOR
from packetgate.tools.spec.tool_spec import digest_of

Handled = ToolMessage | Command[Any]

SERVER = "agent"
"""What the agent's tools belong to, in rules and in the journal."""
ID_CHARS = 32
LARGE = 100_000
"""Tokens that the chosen tools may take: their number is what bounds them."""
AGAIN = (
    "this very change was already made, or is asked about, for the same request, so it is not made again: go on from "
    "its result; if it is wanted twice, ask the user"
)
SOURCES = 20
"""Earlier calls in whose outputs the values of a call are looked for."""


class GatedState(AgentState[Any]):
    """The agent's state, with the calls that were judged, and approved where that was needed, by their ids."""

    gated: NotRequired[Annotated[dict[str, str], PrivateStateAttr]]


class PacketgateMiddleware(AgentMiddleware[GatedState, Any, Any]):
    """Shows the model the tools that fit the request, and has each of its calls judged before it runs.

    A call that only reads, with values that the user named, runs. Others are put to the user, all of a step at once, in
    the form of LangChain's `HumanInTheLoopMiddleware`. What is written down in the journal is not run twice.
    """

    state_schema = GatedState

    def __init__(
        self,
        tools: Sequence[BaseTool | Callable[..., Any]],
        *,
        max_tools: int = 16,
        settings: RoutingContext | Mapping[str, Any] | None = None,
        policy: str | Path | None = None,
        journal: str | Path | None = None,
        unguarded: Collection[str] = (),
    ) -> None:
        """Take the agent's tools; `create_agent` needs none beside them.

        Args:
            tools: functions and LangChain tools. `packetgate.reads` marks those that change nothing.
            max_tools: most tools that the model sees at once, those that fit the request best.
            settings: of the gate, as `RoutingContext` has them. Tools that change something run once they are approved.
            policy: a `packetgate.toml`.
            journal: a SQLite file, or a `postgresql://` URL. Agents whose checkpointer outlasts the process need it.
            unguarded: names of tools of the agent, such as other middleware's, that run without a judgement.

        Raises:
            InputError: a tool cannot be used.
            ConfigError: the settings or the policy cannot be read.
        """
        super().__init__()
        self.tools = [as_tool(one) for one in tools]
        self.max_tools, self.unguarded = max_tools, frozenset(unguarded)
        changing = {"allow_write_tools": True, "allow_execute_tools": True}
        given = settings if isinstance(settings, RoutingContext) else {**changing, **(settings or {})}
        self.settings = routing_context(given)
        written = journal_at(journal) if journal is not None else MemoryJournal()
        preferences = load_preferences(Path(policy)) if policy else Preferences()
        self._toolbox = _AgentTools(self.tools, preferences)
        self._pipeline = Pipeline(self._toolbox, written, SERVER)
        self._loop = LoopThread()

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Show the model the tools that fit."""
        return handler(self._narrowed(request))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Show the model the tools that fit."""
        return await handler(await asyncio.to_thread(self._narrowed, request))

    def after_model(self, state: GatedState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Judge the calls of a step, and ask about those that need the user's word."""
        step = self._step(state)
        if not step.calls:
            return None
        self._loop.run(step.propose())
        while step.waits:
            self._loop.run(step.take(interrupt(step.question())))
            if step.is_answered_again:
                interrupt(step.question())
        return step.update()

    async def aafter_model(self, state: GatedState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Judge the calls of a step, and ask about those that need the user's word."""
        step = self._step(state)
        if not step.calls:
            return None
        await step.propose()
        while step.waits:
            await step.take(interrupt(step.question()))
            if step.is_answered_again:
                interrupt(step.question())
        return step.update()

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Handled]) -> Handled:
        """Run a call that may run, once."""
        if request.tool_call["name"] in self.unguarded:
            return handler(request)
        here = contextvars.copy_context()

        async def handled(changed: ToolCallRequest) -> Handled:
            return await asyncio.to_thread(here.copy().run, handler, changed)

        return self._loop.run(self._executed(request, handled))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Handled]]
    ) -> Handled:
        """Run a call that may run, once."""
        if request.tool_call["name"] in self.unguarded:
            return await handler(request)
        return await self._executed(request, handler)

    def _narrowed(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        own = {one.name for one in self.tools}
        others = {one.name for one in request.tools if isinstance(one, BaseTool)} - own - self.unguarded
        if others:
            raise ConfigError(
                f"{', '.join(sorted(others))}: give these tools to PacketgateMiddleware, or name them in `unguarded`"
            )
        if len(own) <= self.max_tools:
            return request
        words = _last_words(request.messages)
        wanted = PaletteRequest(
            words=words,
            access=access_of(words),
            size=self.max_tools,
            token_budget=LARGE,
            recent=with_recent((), reversed([f"{SERVER}.{one['name']}" for one, _ in _earlier(request.messages)])),
        )
        palette = choose_palette(wanted, self._toolbox.known)
        shown = {entry.tool_name.removeprefix(f"{SERVER}.") for entry in palette.entries}
        kept = [one for one in request.tools if not isinstance(one, BaseTool) or one.name in shown | self.unguarded]
        return request.override(tools=kept)

    def _step(self, state: GatedState) -> "_Step":
        messages = state["messages"]
        at = next((at for at in range(len(messages) - 1, -1, -1) if isinstance(messages[at], AIMessage)), None)
        last = messages[at] if at is not None else None
        done = {one.tool_call_id for one in messages[at or 0 :] if isinstance(one, ToolMessage)}
        calls = last.tool_calls if isinstance(last, AIMessage) else []
        mine = [one for one in calls if one["id"] not in done and one["name"] not in self.unguarded]
        return _Step(self._pipeline, self.settings, messages[:at], mine, str(last.id) if last else "")

    async def _executed(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Handled]]
    ) -> Handled:
        call, kept = request.tool_call, request.state.get("gated") or {}
        known = kept.get(str(call["id"]))
        if known is None:
            return _refused(call, "it was not judged: list PacketgateMiddleware after middleware that adds calls")
        packet = CognitionPacket.model_validate_json(known)
        with self._toolbox.running(request, handler) as running:
            packet, entries = await self._pipeline.executed(packet)
        if entries:
            await self._pipeline.journal.record(*entries)
        if running.interrupted:
            raise running.interrupted
        (done,) = packet.routing.calls
        if done.status is ToolExecutionStatus.EXECUTED and running.handled is not None:
            return running.handled
        said = done.result.output or done.result.error if done.result else done.doubt or f"{done.status}"
        if done.status is ToolExecutionStatus.EXECUTED:  # by an earlier run, as the journal knows
            return ToolMessage(said or "", name=call["name"], tool_call_id=str(call["id"]))
        return _refused(call, said or f"it is {done.status}")


class _Step:
    """The calls of one answer of the model, on their way to be run."""

    def __init__(
        self,
        pipeline: Pipeline,
        settings: RoutingContext,
        before: Sequence[AnyMessage],
        calls: Sequence[AgentCall],
        answer: str,
    ) -> None:
        """Take the calls of the answer with this id: some servers number the calls of each answer from 0."""
        self.calls = list(calls)
        self._pipeline, self._settings = pipeline, settings
        self._before, self._thread, self._answer = before, _thread(), answer
        self.is_answered_again = False
        """Whether the last reply answered a question that had its answer.

        When a thread resumes from an earlier checkpoint, LangGraph returns the first reply again, and then the new one.
        The new one was not given to the question that is put now, so it does not count.
        """
        self._packets: dict[str, CognitionPacket] = {}
        self._refused: dict[str, ToolMessage] = {}
        self._problem = ""

    async def propose(self) -> None:
        """Have each call checked and judged. A change that was made for the same request is not made again."""
        made = [
            (call["name"], call["args"]) for call, said in _earlier(_this_turn(self._before)) if said.status != "error"
        ]
        for call in self.calls:
            if (wanted := (call["name"], call["args"])) in made and self._changes(call):
                self._refused[str(call["id"])] = _refused(call, AGAIN)
                continue
            made.append(wanted)
            known = digest_of([self._thread, self._answer, str(call["id"])])[:ID_CHARS]
            caller = _Conversation(self._before, self._settings, self._thread, known)
            name = f"{SERVER}.{call['name']}"
            try:
                self._packets[str(call["id"])] = await self._pipeline.proposed(
                    Wanted(name, call["args"], call_id=known), caller, self._settings
                )
            except CallRefusedError as error:
                told = str(error).replace(f"{SERVER}{SEPARATOR}", "").replace(f"{SERVER}.", "")
                self._refused[str(call["id"])] = _refused(call, told)

    def _changes(self, call: AgentCall) -> bool:
        spec = self._pipeline.tools.known.get(f"{SERVER}.{call['name']}")
        return spec is not None and judge_call(spec, call["args"]).risk is not Risk.READ

    @property
    def waits(self) -> bool:
        """Whether a call waits for the user's word."""
        return bool(self._waiting)

    @property
    def _waiting(self) -> list[str]:
        return [name for name, packet in self._packets.items() if packet.governance.question is not None]

    def question(self) -> dict[str, Any]:
        """Return what is put to the user: all calls that wait."""
        asked = [payload(one, one.governance.question) for one in self._packets.values() if one.governance.question]
        requests = [{**one, "name": _own_name(one["name"])} for each in asked for one in each["action_requests"]]
        configs = [
            {**one, "action_name": _own_name(one["action_name"])} for each in asked for one in each["review_configs"]
        ]
        problem = {"problem": self._problem} if self._problem else {}
        return {"action_requests": requests, "review_configs": configs, **problem}

    async def take(self, reply: Any) -> None:
        """Take the user's word: a decision for each call that waits, or one word for all."""
        waiting = self._waiting
        decisions = reply.get("decisions") if isinstance(reply, Mapping) else reply
        each = decisions if isinstance(decisions, list) else [reply] * len(waiting)
        if len(each) != len(waiting):
            self.is_answered_again = False
            self._problem = f"{len(each)} decisions for {len(waiting)} calls: send one for each, in their order"
            return
        self._problem, self.is_answered_again = "", False
        for name, decision in zip(waiting, each, strict=True):
            packet = self._packets[name]
            try:
                packet = await self._pipeline.answered(packet, _canonical(decision))
            except (RequestError, CallRefusedError) as error:
                self._problem = str(error)
                self.is_answered_again |= self._problem == TAKEN
                question = packet.governance.question
                packet = packet.merged(
                    {"governance": packet.governance.asking(question.again(self._problem) if question else None)}
                )
            self._packets[name] = packet

    def update(self) -> dict[str, Any]:
        """Return what the step adds to the agent's state: what may run, and what is told of calls that do not."""
        told = [*self._refused.values()]
        gated = {}
        for call in self.calls:
            packet = self._packets.get(str(call["id"]))
            if packet is None:
                continue
            (judged,) = packet.routing.calls
            if judged.status is ToolExecutionStatus.APPROVED:
                gated[str(call["id"])] = packet.model_dump_json(exclude={"messages"}, exclude_computed_fields=True)
            else:
                comment = next((one.comment for one in packet.governance.approvals if one.comment), "")
                told.append(_refused(call, comment or f"the user did not approve of it: it is {judged.status}"))
        return {"messages": told, "gated": gated}


@dataclass(frozen=True)
class _Conversation:
    """Who wants a call made: an agent, in one thread."""

    messages: Sequence[AnyMessage]
    settings: RoutingContext
    thread: str
    packet_id: str

    @cached_property
    def sources(self) -> tuple[ToolCall, ...]:
        """The earlier calls of the thread, with what they returned."""
        return tuple(_source(call, said) for call, said in [*_earlier(self.messages)][-SOURCES:])

    def opened(self, entry: PaletteEntry, *, apart: bool = False) -> CognitionPacket:
        """Return the packet of one more call."""
        return CognitionPacket(
            header=Header(packet_id=self.packet_id, session_id=self.thread, origin=SERVER, person=self.thread),
            context=Context(palette=(entry,)),
            content=Content(original_prompt=_last_words(self.messages)),
            governance=Governance(
                dry_run=self.settings.is_dry_run,
                settings=self.settings,
            ),
            status=Status(state=PacketState.PROCESSING),
            messages=[one for one in self.messages if not isinstance(one, ToolMessage)],
        )


class _AgentTools:
    """The agent's tools as a toolbox: a call goes to whatever handles it in the agent."""

    def __init__(self, tools: Sequence[BaseTool], preferences: Preferences) -> None:
        self.known = Catalogue([spec_of_tool(SERVER, one) for one in tools], preferences=preferences)
        self._running: contextvars.ContextVar[_Running] = contextvars.ContextVar("running")

    def running(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Handled]]) -> "_Running":
        """Return what calls go to while it is entered."""
        return _Running(self._running, request, handler)

    async def catalogue(self, *, patient: bool = False) -> Catalogue:
        """Return the tools."""
        return self.known

    def health(self) -> tuple[ServerHealth, ...]:
        """Return nothing: there are no servers."""
        return ()

    async def call(self, tool_name: str, params: dict[str, Any], idempotency_key: str = "") -> ToolResult:
        """Have the agent call a tool."""
        return await self._running.get().call(params)


class _Running:
    """One call that the agent is about to make."""

    def __init__(
        self,
        current: "contextvars.ContextVar[_Running]",
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[Handled]],
    ) -> None:
        self._current, self._request, self._handler = current, request, handler
        self.handled: Handled | None = None
        """What the agent made of the call; None: it was not called, as the journal knows how it ended."""
        self.interrupted: GraphBubbleUp | None = None
        """The tool's own interrupt, which goes on to LangGraph."""

    def __enter__(self) -> "_Running":
        self._token = self._current.set(self)
        return self

    def __exit__(self, *error: object) -> None:
        self._current.reset(self._token)

    async def call(self, params: dict[str, Any]) -> ToolResult:
        """Make it with these arguments."""
        started = time.perf_counter()
        call = AgentCall(**{**self._request.tool_call, "args": params})
        try:
            self.handled = handled = await self._handler(self._request.override(tool_call=call))
        except GraphBubbleUp as interrupted:
            self.interrupted = interrupted
            raise
        failed = isinstance(handled, ToolMessage) and handled.status == "error"
        text = handled.text if isinstance(handled, ToolMessage) else ""
        return await to_result_async(text, None, ms_since(started), is_error=failed, complete=True)


def _earlier(messages: Sequence[AnyMessage]) -> Iterator[tuple[AgentCall, ToolMessage]]:
    """Yield the calls of a conversation that returned something, with what they did."""
    made = {str(call["id"]): call for one in messages if isinstance(one, AIMessage) for call in one.tool_calls}
    for one in messages:
        if isinstance(one, ToolMessage) and one.tool_call_id in made:
            yield made[one.tool_call_id], one


def _source(call: AgentCall, said: ToolMessage) -> ToolCall:
    result = ToolResult(success=said.status != "error", output=said.text)
    return ToolCall(tool_name=f"{SERVER}.{call['name']}", params=call["args"], risk=Risk.READ, result=result)


def _this_turn(messages: Sequence[AnyMessage]) -> Sequence[AnyMessage]:
    asked = [at for at, one in enumerate(messages) if isinstance(one, HumanMessage)]
    return messages[asked[-1] :] if asked else messages


def _last_words(messages: Sequence[AnyMessage]) -> str:
    return next((one.text for one in reversed(messages) if isinstance(one, HumanMessage)), "")


def _thread() -> str:
    with suppress(RuntimeError):  # outside a graph
        return str((get_config().get("configurable") or {}).get("thread_id") or "")
    return ""


def _own_name(name: str) -> str:
    return name.removeprefix(f"{SERVER}.")


def _canonical(decision: Any) -> Any:
    """Return a decision with the name that an edited call has here."""
    edited = decision.get("edited_action") if isinstance(decision, Mapping) else None
    if not isinstance(edited, Mapping) or "name" not in edited:
        return decision
    return {**decision, "edited_action": {**edited, "name": f"{SERVER}.{_own_name(str(edited['name']))}"}}


def _refused(call: AgentCall, why: str) -> ToolMessage:
    return ToolMessage(why, name=call["name"], tool_call_id=str(call["id"]), status="error")
