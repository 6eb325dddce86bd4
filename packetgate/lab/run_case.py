"""Run an evaluation case: a turn on the real graph that stops before a tool runs or an answer is written."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from packetgate.deciders.language.review import is_harmless
from packetgate.deciders.protocols import Deciders
from packetgate.graph.building import build_graph
from packetgate.graph.checkpoints import PacketSerializer
from packetgate.lab.cases import Case, EarlierCall, load_cases
from packetgate.lab.passport import CaseResult, EvaluatedCall, evaluation_version
from packetgate.models.transport import collect_requests
from packetgate.state.base import TokenUsage
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket, TurnInput
from packetgate.state.routing import ToolCall, ToolResult, ToolRouting
from packetgate.state.sections import Content, Governance, Header, ServerHealth
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.catalogue.catalogue import Catalogue

STOPS = ["ask_user", "execute_tool", "respond"]


@dataclass
class _Tools:
    last_catalogue: Catalogue

    async def catalogue(self, *, wait_for_all: bool = False, called: Collection[str] = ()) -> Catalogue:
        return self.last_catalogue

    def health(self) -> tuple[ServerHealth, ...]:
        return ()

    async def call(self, tool_name: str, params: dict[str, Any], idempotency_key: str = "") -> ToolResult:
        raise NotImplementedError(f"{tool_name}: an evaluation stops before a tool runs")


async def run_case(case: Case, deciders: Deciders, context: RoutingContext) -> CaseResult:
    """Run a case and return its result."""
    toolbox = _Tools(await asyncio.to_thread(Catalogue, load_cases().offered_tools(case)))
    saver = InMemorySaver(serde=PacketSerializer())
    graph = build_graph(deciders, toolbox, 0).compile(checkpointer=saver, interrupt_before=STOPS)
    config: Any = {"configurable": {"thread_id": case.name}}
    if case.earlier_call:
        await graph.aupdate_state(config, _state_after_call(case, case.earlier_call, context), as_node="execute_tool")
    started = perf_counter()
    with collect_requests() as errors:
        turn = None if case.earlier_call else TurnInput(messages=[HumanMessage(case.request)])
        state = await graph.ainvoke(turn, config, context=context)
    packet = CognitionPacket.model_validate({name: state[name] for name in CognitionPacket.model_fields})
    problem = errors[-1] if errors and all(errors) else ""
    return _case_result(case, packet, perf_counter() - started, problem)


def _state_after_call(case: Case, earlier_call: EarlierCall, context: RoutingContext) -> dict[str, Any]:
    """Return the state of a turn whose first call has run, and whose selection is not complete."""
    executed = {"status": ToolExecutionStatus.EXECUTED, "result": ToolResult(success=True, output=earlier_call.output)}
    call = ToolCall(tool_name=earlier_call.tool, params=earlier_call.params, **executed)
    packet = CognitionPacket(
        messages=[HumanMessage(case.request)],
        header=Header(session_id=case.name),
        content=Content(original_prompt=case.request),
        governance=Governance(settings=context),
        tool_routing=ToolRouting(outcome="call", calls=(call,), complete=False),
    )
    return {name: getattr(packet, name) for name in CognitionPacket.model_fields}


def _case_result(case: Case, packet: CognitionPacket, seconds: float, problem: str) -> CaseResult:
    routing = packet.tool_routing or ToolRouting()
    calls = [call for call in routing.calls if call.status is not ToolExecutionStatus.EXECUTED]
    results = case.mark_calls([(call.tool_name, call.params) for call in calls])
    reviews = {evaluation.subject: evaluation for evaluation in packet.reasoning.evaluations}
    spent = sum(packet.metrics.token_usage.values(), start=TokenUsage())
    answered = not problem and bool(routing.question) == case.needs_question
    return CaseResult(
        version=evaluation_version(),
        case=case.name,
        kind=case.kind,
        right=answered and all(results) and len(results) == len(case.calls),
        calls=tuple(
            EvaluatedCall(
                tool=call.tool_name,
                right=right,
                review=review.kind,
                score=review.score if review.stated is None else review.stated,
                passed=review.label == "approved",
                only_reads=is_harmless(call),
            )
            for call, right in zip(calls, results, strict=True)
            if (review := reviews.get(call.call_id))
        ),
        evaluated=spent.input_tokens - spent.cached_tokens,
        written=spent.output_tokens,
        seconds=round(seconds, 3),
        problem=problem,
    )
