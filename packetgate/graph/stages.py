"""Wraps nodes: dependencies, duration, journal entries, records, events and telemetry of a stage."""

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
from packetgate.graph.event_loops import LoopThread
from packetgate.graph.telemetry import (
    ended_span,
    guarded,
    model_attributes,
    record_break,
    record_change,
    started_span,
)
from packetgate.models.requests import ModelRequest, collect_requests
from packetgate.models.source import NamedModel
from packetgate.nodes.review_selection import reviewed
from packetgate.state.base import TokenUsage, ms_since
from packetgate.state.context import RoutingContext, routing_context
from packetgate.state.errors import DecisionError, PacketgateError
from packetgate.state.events import StageStarted, StageStopped
from packetgate.state.packet import CognitionPacket, OpeningPacket, PacketUpdate
from packetgate.state.sections import Header, StageError
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.approval.thread_messages import with_thread_messages
from packetgate.tools.catalogue.toolbox import AllowedTools, Toolbox
from packetgate.tools.execution.journal import Entry, Journal

CALL_REVIEWED = "call_reviewed"


@dataclass(frozen=True, eq=False)
class Stage(Runnable[CognitionPacket, PacketUpdate]):
    """Runs a node with its dependencies, as a LangChain runnable that LangGraph can call."""

    name: str
    node: Callable[..., Awaitable[PacketUpdate]]
    journal: Journal
    needs: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the node."""
    model: Callable[[], Awaitable[NamedModel]] | None = None
    """The model whose tokens the stage spends."""
    settings: RoutingContext | None = None
    """Default settings of a graph inside another graph."""
    record_requests: Callable[[Header, str, list[ModelRequest], BaseStore], Awaitable[None]] | None = None
    """Records the stage's requests to its model, also if the stage fails."""
    record_turn: Callable[[CognitionPacket, BaseStore], Awaitable[None]] | None = None
    """Records the turn after the stage that ends it."""
    loop: LoopThread = field(default_factory=LoopThread)
    """Runs the stage for synchronous callers."""

    def invoke(self, input: CognitionPacket, config: RunnableConfig | None = None, **_: Any) -> PacketUpdate:  # noqa: A002
        """Run the stage from sync code and return its update."""
        return self.loop.run(self.ainvoke(input))

    async def ainvoke(self, input: CognitionPacket, config: RunnableConfig | None = None, **_: Any) -> PacketUpdate:  # noqa: A002
        """Return the stage's update."""
        return await self.run(input, runtime=get_runtime(RoutingContext))

    async def run(self, state: CognitionPacket, *, runtime: Runtime[RoutingContext]) -> PacketUpdate:
        """Return the stage's update with its duration; journal entries are written before the next stage starts."""
        session_id, packet_id = state.header.session_id, state.header.packet_id
        if isinstance(state, OpeningPacket):  # its header belongs to the last turn
            session_id, packet_id = "", ""
        runtime.stream_writer(StageStarted(stage=self.name, session_id=session_id, packet_id=packet_id))
        with ExitStack() as stack:
            span = started_span(self.name, packet_id)
            if span.is_recording():
                stack.callback(ended_span, span, packet_id)
                stack.enter_context(use_span(span, record_exception=False, set_status_on_exception=False))
            requests = stack.enter_context(collect_requests()) if self.record_requests else []
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
                    record_break(span, stopped, error, await model_attributes(self.model, stopped.usage))
                raise
            finally:
                if requests and self.record_requests and runtime.store is not None:
                    await self.record_requests(state.header, self.name, requests, runtime.store)
            known = 0 if "header" in update else len(state.reasoning.reflection_log)
            update["reasoning"] = update.get("reasoning", state.reasoning).timed(known, took)
            update["metrics"] = update.get("metrics", state.metrics).with_time(self.name, took)
            with guarded(update.get("header", state.header).packet_id):
                finished = change.event(update, took)
                runtime.stream_writer(finished)
                record_change(span, change, finished, await model_attributes(self.model, finished.usage))
        if self.record_turn and runtime.store is not None:
            await self.record_turn(state.merged(update), runtime.store)
        return update

    async def _journaled(
        self, packet: CognitionPacket, runtime: Runtime[RoutingContext]
    ) -> tuple[PacketUpdate, StageChange]:
        runtime = runtime.override(context=routing_context(runtime.context, self.settings))
        needs = self.needs
        if toolbox := needs.get("toolbox"):  # filtered by the allow-lists of the packet and of the run
            toolbox = AllowedTools(toolbox, packet.governance.settings, packet.header.origin)
            if runtime.context != packet.governance.settings:
                toolbox = AllowedTools(toolbox, runtime.context, packet.header.origin)
            needs = {**needs, "toolbox": toolbox}
        update = await self.node(packet, runtime, **needs)
        change = StageChange(self.name, packet, update)
        if entries := tuple(journal_entries(change)):
            await self.journal.record(*entries)
        return with_thread_messages(packet, update), change


def review_error_handler(
    stage: Stage, route: Callable[[CognitionPacket], str]
) -> Callable[[CognitionPacket, NodeError, Runtime[RoutingContext]], Runnable[Any, Command[str]]]:
    """Return LangGraph's error handler of the review: a failed review counts as 0.0 for every call."""

    def handle(
        state: CognitionPacket, error: NodeError, runtime: Runtime[RoutingContext]
    ) -> Runnable[Any, Command[str]]:
        async def run(_: Any) -> Command[str]:
            packet = state.merged({"metrics": state.metrics.with_tokens(stage.name, _spent(error.error))})
            needs = {name: stage.needs[name] for name in ("toolbox", "journal")} | {"error": error.error}
            substitute = replace(stage, node=_failed_review, needs=needs, model=None, record_requests=None)
            update = await substitute.run(packet, runtime=runtime)
            return Command(update=update, goto=route(packet.merged(update)))

        return RunnableLambda(lambda state: stage.loop.run(run(state)), run)

    return handle


async def _failed_review(
    packet: CognitionPacket,
    runtime: Runtime[RoutingContext],
    *,
    toolbox: Toolbox,
    journal: Journal,
    error: BaseException,
) -> PacketUpdate:
    why = str(error) if isinstance(error, PacketgateError) else f"{type(error).__name__}: {error}"
    update = await reviewed(packet, runtime, FAILED_REVIEW, await toolbox.catalogue(), toolbox=toolbox, journal=journal)
    update["metrics"] = update["metrics"].failed(
        StageError(stage="review_selection", message=f"the review failed: {why}")
    )
    return update


@dataclass(frozen=True, eq=False)
class Direct(Runnable[CognitionPacket, Any]):
    """A plain function of the packet. LangGraph would call it in a thread, which takes longer."""

    function: Callable[[CognitionPacket], Any]
    name: str

    def invoke(self, input: CognitionPacket, config: RunnableConfig | None = None, **_: Any) -> Any:  # noqa: A002
        """Call the function."""
        return self.function(input)

    async def ainvoke(self, input: CognitionPacket, config: RunnableConfig | None = None, **_: Any) -> Any:  # noqa: A002
        """Call the function."""
        return self.function(input)


def journal_entries(change: StageChange) -> Iterator[Entry]:
    """Yield the journal's entries on a stage: request, proposals, reviews, approvals and results.

    They are derived from the packet's changes, so that packet and journal cannot differ.
    """
    header, (before, after) = change.header, change.governance
    entry = partial(Entry, session_id=header.session_id, packet_id=header.packet_id)
    if change.request is not None:
        request = {"channel": header.origin, "person": header.person, "request": change.request}
        yield entry("turn_opened", detail=request)
    calls = {call.call_id: call for call in change.calls}
    for call in calls.values():
        if call.status is ToolExecutionStatus.PENDING:
            fields = {"tool_name", "params", "risk", "open_world", "risk_why", "provenance"}
            yield entry("call_proposed", call_id=call.call_id, detail=call.model_dump(mode="json", include=fields))
    log = change.reasoning[1].reflection_log
    for judged in change.evaluations:
        verdict = judged.model_dump(mode="json", exclude={"name", "subject"})
        verdict["by"] = (log[-1].decided_by if log else None) or ""
        if judged.subject in calls:
            verdict |= {"tool": calls[judged.subject].tool_name, "status": calls[judged.subject].status.value}
        yield entry(CALL_REVIEWED, call_id=judged.subject, detail=verdict)
    approved = set()
    for approval in after.approvals[len(before.approvals) :]:
        event = f"call_{approval.outcome}"
        approved.add((event, approval.call_id))
        detail = approval.model_dump(mode="json", exclude={"call_id", "outcome", "at"})
        yield entry(event, call_id=approval.call_id, detail=detail)
    for audit in after.audit[len(before.audit) :]:
        if (audit.event, audit.call_id) not in approved:
            yield entry(audit.event, call_id=audit.call_id or "", detail={"detail": audit.detail})
    question = after.question
    if question is not None and (before.question is None or before.question.question_id != question.question_id):
        yield entry("question_asked", detail=question.model_dump(mode="json", exclude={"reply"}))


def _spent(error: BaseException) -> TokenUsage:
    return error.usage if isinstance(error, DecisionError) else TokenUsage()
