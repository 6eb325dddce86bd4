"""What is around every stage: its needs, its time, its entries in the journal, its record, and the events about it."""

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langgraph.errors import GraphBubbleUp, NodeError
from langgraph.runtime import Runtime, get_runtime
from langgraph.store.base import BaseStore
from langgraph.types import Command
from opentelemetry.trace import use_span

from packetgate.deciders.gate import FAILED_REVIEW
from packetgate.graph.changes import StageChange
from packetgate.graph.loops import LoopThread
from packetgate.graph.telemetry import (
    ended_span,
    guarded,
    of_model,
    record_break,
    record_change,
    started_span,
)
from packetgate.models.requests import ModelRequest, collected
from packetgate.models.source import Named
from packetgate.nodes.review_selection import STAGE, reviewed
from packetgate.state.base import TokenUsage, ms_since
from packetgate.state.context import RoutingContext, routing_context
from packetgate.state.errors import DecisionError, PacketgateError
from packetgate.state.events import StageStarted, StageStopped
from packetgate.state.packet import CognitionPacket, OpeningPacket, PacketUpdate
from packetgate.state.sections import Governance, Header, StageError
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.approval.thread_messages import with_thread_messages
from packetgate.tools.catalogue.toolbox import AllowedTools, Toolbox
from packetgate.tools.execution.journal import Entry, Journal

REVIEWED = "call_reviewed"


@dataclass(frozen=True, eq=False)
class Stage(Runnable[CognitionPacket, PacketUpdate]):
    """A stage as LangGraph calls it: `node` with all that it needs."""

    name: str
    node: Callable[..., Awaitable[PacketUpdate]]
    journal: Journal
    needs: Mapping[str, Any] = field(default_factory=dict)
    model: Callable[[], Awaitable[Named]] | None = None
    """Whose tokens the stage spends."""
    settings: RoutingContext | None = None
    """Those of a run whose context is nobody's or another graph's."""
    keep_requests: Callable[[Header, str, list[ModelRequest], BaseStore], Awaitable[None]] | None = None
    """Stores what the stage, named after the header, said to its model; also where it then breaks."""
    keep_turn: Callable[[CognitionPacket, BaseStore], Awaitable[None]] | None = None
    """Stores the turn, which the stage has ended."""
    loop: LoopThread = field(default_factory=LoopThread)
    """Runs the stage in a graph that is not awaited."""

    def invoke(self, input: CognitionPacket, config: RunnableConfig | None = None, **_: Any) -> PacketUpdate:  # noqa: A002
        """Return the stage's update, in sync code."""
        return self.loop.run(self.ainvoke(input))

    async def ainvoke(self, input: CognitionPacket, config: RunnableConfig | None = None, **_: Any) -> PacketUpdate:  # noqa: A002
        """Return the stage's update."""
        return await self.run(input, runtime=get_runtime(RoutingContext))

    async def run(self, state: CognitionPacket, *, runtime: Runtime[RoutingContext]) -> PacketUpdate:
        """Return the stage's update with its time measured; the journal is written before anything follows from it."""
        session_id, packet_id = state.header.session_id, state.header.packet_id
        if isinstance(state, OpeningPacket):  # its header is still the last turn's
            session_id, packet_id = "", ""
        runtime.stream_writer(StageStarted(stage=self.name, session_id=session_id, packet_id=packet_id))
        with ExitStack() as stack:
            span = started_span(self.name, packet_id)
            if span.is_recording():
                stack.callback(ended_span, span, packet_id)
                stack.enter_context(use_span(span, record_exception=False, set_status_on_exception=False))
            requests = stack.enter_context(collected()) if self.keep_requests else []
            started = time.perf_counter()
            try:
                update, change = await self._journaled(state, runtime)
                took = ms_since(started)
            except Exception as error:
                with guarded(packet_id):
                    stopped = StageStopped(
                        stage=self.name,
                        session_id=session_id,
                        packet_id=packet_id,
                        reason="interrupt" if isinstance(error, GraphBubbleUp) else "error",
                        error=type(error).__qualname__,
                        usage=_spent(error),
                        duration_ms=ms_since(started),
                    )
                    runtime.stream_writer(stopped)
                    record_break(span, stopped, error, await of_model(self.model, stopped.usage))
                raise
            finally:
                if requests and self.keep_requests and runtime.store is not None:
                    await self.keep_requests(state.header, self.name, requests, runtime.store)
            known = 0 if "header" in update else len(state.reasoning.reflection_log)
            update["reasoning"] = update.get("reasoning", state.reasoning).timed(known, took)
            update["metrics"] = update.get("metrics", state.metrics).took(self.name, took)
            with guarded(update.get("header", state.header).packet_id):
                finished = change.ended(update).event(took)
                runtime.stream_writer(finished)
                record_change(span, change, finished, await of_model(self.model, finished.usage))
        if self.keep_turn and runtime.store is not None:
            await self.keep_turn(state.merged(update), runtime.store)
        return update

    async def _journaled(
        self, packet: CognitionPacket, runtime: Runtime[RoutingContext]
    ) -> tuple[PacketUpdate, StageChange]:
        runtime = runtime.override(context=routing_context(runtime.context, self.settings))
        needs = self.needs
        if toolbox := needs.get("toolbox"):  # a stage sees what the packet's settings, and the run's, allow
            toolbox = AllowedTools(toolbox, packet.governance.settings, packet.header.origin)
            if runtime.context != packet.governance.settings:
                toolbox = AllowedTools(toolbox, runtime.context, packet.header.origin)
            needs = {**needs, "toolbox": toolbox}
        update = await self.node(packet, runtime, **needs)
        change = StageChange(self.name, packet, update)
        if entries := tuple(trail(change)):
            await self.journal.record(*entries)
        return with_thread_messages(packet, update), change


def recovering(
    stage: Stage, node: Callable[..., Awaitable[PacketUpdate]], route: Callable[[CognitionPacket], str]
) -> Callable[[CognitionPacket, NodeError, Runtime[RoutingContext]], Runnable[Any, Command[str]]]:
    """Return what goes on after a stage broke: `node` gets the `error` and decides in its stead.

    What the broken stage spent is in the packet before that begins: its event was sent when it broke.
    """

    def handle(
        state: CognitionPacket, error: NodeError, runtime: Runtime[RoutingContext]
    ) -> Runnable[Any, Command[str]]:
        async def run(_: Any) -> Command[str]:
            packet = state.merged({"metrics": state.metrics.spent(stage.name, _spent(error.error))})
            needs = {name: stage.needs[name] for name in ("toolbox", "journal")}
            stand_in = replace(stage, node=node, needs={**needs, "error": error.error}, model=None, keep_requests=None)
            update = await stand_in.run(packet, runtime=runtime)
            return Command(update=update, goto=route(packet.merged(update)))

        return RunnableLambda(lambda state: stage.loop.run(run(state)), run)  # which LangGraph runs, in either way

    return handle


@dataclass(frozen=True, eq=False)
class Direct(Runnable[CognitionPacket, Any]):
    """A plain function of the packet, called directly: LangGraph would call it in a thread, which takes longer."""

    function: Callable[[CognitionPacket], Any]
    name: str

    def invoke(self, input: CognitionPacket, config: RunnableConfig | None = None, **_: Any) -> Any:  # noqa: A002
        """Call the function."""
        return self.function(input)

    async def ainvoke(self, input: CognitionPacket, config: RunnableConfig | None = None, **_: Any) -> Any:  # noqa: A002
        """Call the function."""
        return self.function(input)


def trail(change: StageChange) -> Iterator[Entry]:
    """Yield the journal's entries on a stage: who asked, what was proposed, how it was judged, who approved it, and
    what came of it. They follow from what changed in the packet, so that the two cannot differ.
    """
    header = change.header
    entry = partial(Entry, session_id=header.session_id, packet_id=header.packet_id)
    if change.request is not None:
        asked = {"channel": header.origin, "person": header.person, "request": change.request}
        yield entry("turn_opened", detail=asked)
    calls = {call.call_id: call for call in change.calls}
    for call in calls.values():
        if call.status is ToolExecutionStatus.PENDING:
            fields = {"tool_name", "params", "risk", "open_world", "risk_why", "provenance"}
            proposed = call.model_dump(mode="json", include=fields)
            yield entry("call_proposed", call_id=call.call_id, detail=proposed)
    for judged in change.evaluations:
        log = change.reasoning[1].reflection_log
        by = (log[-1].decided_by if log else None) or ""
        verdict = judged.model_dump(mode="json", exclude={"name", "subject"}) | {"by": by}
        if judged.subject in calls:
            verdict |= {"tool": calls[judged.subject].tool_name, "status": calls[judged.subject].status.value}
        yield entry(REVIEWED, call_id=judged.subject, detail=verdict)
    yield from _governed(*change.governance, entry)


def _governed(before: Governance, after: Governance, entry: Callable[..., Entry]) -> Iterator[Entry]:
    approved = set()
    for approval in after.approvals[len(before.approvals) :]:
        event = f"call_{approval.outcome}"
        approved.add((event, approval.call_id))
        detail = approval.model_dump(mode="json", exclude={"call_id", "outcome", "at"})
        yield entry(event, call_id=approval.call_id, detail=detail)
    for told in after.audit[len(before.audit) :]:
        if (told.event, told.call_id) not in approved:
            yield entry(told.event, call_id=told.call_id or "", detail={"detail": told.detail})
    question = after.question
    if question is not None and (before.question is None or before.question.question_id != question.question_id):
        detail = question.model_dump(mode="json", exclude={"reply"})
        yield entry("question_asked", detail=detail)


def _spent(error: BaseException) -> TokenUsage:
    return error.usage if isinstance(error, DecisionError) else TokenUsage()


async def review_failed(
    packet: CognitionPacket,
    runtime: Runtime[RoutingContext],
    *,
    toolbox: Toolbox,
    journal: Journal,
    error: BaseException,
) -> PacketUpdate:
    """Close the gate: a review that raised counts as 0.0 for every call."""
    why = str(error) if isinstance(error, PacketgateError) else f"{type(error).__name__}: {error}"
    problem = f"the review failed: {why}"
    update = await reviewed(packet, runtime, FAILED_REVIEW, await toolbox.catalogue(), toolbox=toolbox, journal=journal)
    update["metrics"] = update["metrics"].failed(StageError(stage=STAGE, message=problem))
    return update
