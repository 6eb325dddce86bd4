"""Route labelled requests through the real graph up to the gate, and record selection, confidence and outcome."""

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import ValidationError

from benchmarks.gate.sets import Labelled
from benchmarks.stand_ins import Shelf, needing_a_tool, select_carelessly
from packetgate.deciders.protocols import Deciders
from packetgate.graph.building import build_graph
from packetgate.graph.checkpoints import PacketSerializer
from packetgate.graph.composition import deciders_for, model_pool
from packetgate.graph.settings import Settings
from packetgate.state.base import Confidence, Section
from packetgate.state.context import RoutingContext
from packetgate.state.errors import InputError
from packetgate.state.packet import CognitionPacket, TurnInput
from packetgate.state.routing import Risk, ToolCall
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.catalogue.catalogue import Catalogue

Outcome = Literal["passed", "asked", "skipped", "unclear", "no call"]
"""A call passed the gate, waits for the user, or was skipped. Unclear: a question asks for a missing argument."""

Selector = Literal["packetgate", "careless"]
"""The selector: Packetgate's own, or a careless selector that calls a tool for every request."""


class Run(Section):
    """The record of one request, up to the gate."""

    selector: Selector
    request: str
    wanted: tuple[str, ...]
    """The right tools; empty if no tool fits."""
    chosen: tuple[str, ...] = ()
    risk: Risk = Risk.READ
    """Highest risk of the selected calls."""
    outcome: Outcome = "no call"
    selection: Confidence = 0.0
    """Lowest confidence of the selection in a call."""
    review: Confidence = 0.0
    """Lowest confidence of the review in a call, which the gate reads."""

    @property
    def right(self) -> bool:
        """Whether the label names all selected tools, whatever the arguments."""
        return bool(self.chosen) and set(self.chosen) <= set(self.wanted)

    def confidence(self, judge: Literal["selection", "review"]) -> float:
        """Return the confidence of a stage."""
        return self.selection if judge == "selection" else self.review


async def measure(requests: Sequence[Labelled]) -> list[Run]:
    """Route the requests with each selector.

    Raises:
        ModelError: a model that the environment names cannot be used.
    """
    settings = Settings()
    models = model_pool(settings)
    await models.check()
    deciders = deciders_for(models)
    return [run for selector in get_args(Selector) async for run in routed(requests, deciders, selector)]


async def routed(requests: Iterable[Labelled], deciders: Deciders, selector: Selector) -> AsyncIterator[Run]:
    """Yield the record of each request at the gate, with default settings. No call runs."""
    shelf = Shelf(Catalogue())
    if selector == "careless":
        deciders = replace(deciders, intent=needing_a_tool, selector=select_carelessly)
    graph = build_graph(deciders, shelf).compile(
        checkpointer=InMemorySaver(serde=PacketSerializer()), interrupt_before=["execute_tool"]
    )
    for number, one in enumerate(requests):
        shelf.last_catalogue = one.catalogue
        state = await graph.ainvoke(
            TurnInput(messages=[HumanMessage(one.text)]),
            {"configurable": {"thread_id": str(number)}},
            context=RoutingContext(),
        )
        sections = {key: state[key] for key in CognitionPacket.model_fields}
        yield run_of(selector, one, CognitionPacket.model_validate(sections))


def run_of(selector: Selector, asked: Labelled, packet: CognitionPacket) -> Run:
    """Return the record of a packet, whether or not the packet reached the gate."""
    run = Run(selector=selector, request=asked.text, wanted=tuple(sorted(asked.wanted)))
    if packet.tool_routing is None:
        return run
    calls = packet.tool_routing.calls
    if not calls:
        return run.model_copy(update={"outcome": "unclear" if packet.tool_routing.question else "no call"})
    return run.model_copy(
        update={
            "chosen": tuple(call.tool_name for call in calls),
            "risk": max((call.risk for call in calls), key=lambda risk: risk.severity),
            "outcome": _outcome(calls),
            "selection": min(call.selection_confidence for call in calls),
            "review": min(call.review_confidence for call in calls),
        }
    )


def write_runs(path: Path, runs: Iterable[Run]) -> None:
    """Store runs as JSON Lines."""
    path.write_text("".join(f"{run.model_dump_json()}\n" for run in runs), encoding="utf-8")


def read_runs(path: Path) -> list[Run]:
    """Return stored runs.

    Raises:
        InputError: the file cannot be read, or does not contain runs.
    """
    try:
        return [Run.model_validate_json(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError, ValidationError) as error:
        raise InputError(f"{path}: not a file of recorded runs: {str(error).splitlines()[0]}") from error


def _outcome(calls: tuple[ToolCall, ...]) -> Outcome:
    statuses = {call.status for call in calls}
    if statuses == {ToolExecutionStatus.APPROVED}:
        return "passed"
    return "asked" if any(status.awaits_user for status in statuses) else "skipped"
