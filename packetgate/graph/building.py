"""Build the graph: nine stages and the edges between them."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import get_args, get_type_hints

from langgraph.graph import START, StateGraph

from packetgate.deciders.protocols import Deciders
from packetgate.gate.checks import Check
from packetgate.gate.gate import Gate
from packetgate.gate.journal import Journal, MemoryJournal
from packetgate.graph.event_loops import LoopThread
from packetgate.graph.records import calibration_for, learned_for, turn_recorder
from packetgate.graph.routes import (
    after_answering,
    after_asking,
    after_execution,
    after_injection,
    after_intent,
    after_opening,
    after_review,
    after_selection,
)
from packetgate.graph.settings import USAGE_DAYS
from packetgate.graph.stages import InlineNode, Stage
from packetgate.graph.thread_messages import with_thread_messages
from packetgate.nodes.ask_user import ask_user
from packetgate.nodes.build_palette import build_palette
from packetgate.nodes.detect_intent import detect_intent
from packetgate.nodes.execute_tool import execute_tool
from packetgate.nodes.inject_result import inject_result
from packetgate.nodes.open_packet import open_packet
from packetgate.nodes.put_back import put_back
from packetgate.nodes.respond import respond
from packetgate.nodes.review_selection import review_selection
from packetgate.nodes.select_tool import select_tool
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket, OpeningPacket, PacketUpdate, TurnInput
from packetgate.tools.catalogue.toolbox import Toolbox

LAST_STAGE = "respond"

Builder = StateGraph[CognitionPacket, RoutingContext, TurnInput, CognitionPacket]


def build_graph(
    deciders: Deciders,
    toolbox: Toolbox,
    usage_days: int = USAGE_DAYS,
    journal: Journal | None = None,
    *,
    settings: RoutingContext | None = None,
    loop: LoopThread | None = None,
    checks: Sequence[Check] | None = None,
) -> Builder:
    """Return the uncompiled graph. It needs a checkpointer to ask the user, and a store to learn from turns.

    Args:
        journal: ensures that no answer is used twice and no call runs twice. If sessions outlast the process, the
            journal must do so too.
        settings: default settings if the graph is a node of another graph.
        loop: runs the stages for synchronous callers.
        checks: checks in addition to the gate's own; None: those of the installed plug-ins.
    """
    journal, loop = journal or MemoryJournal(), loop or LoopThread()
    gate = Gate(journal, toolbox.call, checks)
    graph: Builder = StateGraph(CognitionPacket, RoutingContext, input_schema=TurnInput, output_schema=CognitionPacket)

    def add(name: str, node: Callable[..., Awaitable[PacketUpdate]], **arguments: object) -> None:
        turn = turn_recorder(usage_days) if name == LAST_STAGE and usage_days else None
        stage = Stage(name, node, journal, arguments, settings, turn, loop)
        graph.add_node(name, stage, input_schema=OpeningPacket if name == "open_packet" else None)

    def branch(name: str, route: Callable[[CognitionPacket], str]) -> None:
        targets = list(get_args(get_type_hints(route)["return"]))
        graph.add_conditional_edges(name, InlineNode(route, route.__name__), targets)

    learned = learned_for if usage_days else None
    add("open_packet", open_packet, journal=journal, toolbox=toolbox)
    add("detect_intent", detect_intent, decider=deciders.intent, toolbox=toolbox)
    add("build_palette", build_palette, toolbox=toolbox, lite=deciders.lite, learned=learned)
    add("select_tool", select_tool, decider=deciders.selector, toolbox=toolbox)
    calibration = partial(calibration_for, model_digest=deciders.model_digest)
    review_arguments = {
        "decider": deciders.reviewer,
        "toolbox": toolbox,
        "gate": gate,
        "calibration": calibration,
    }
    add("review_selection", review_selection, **review_arguments)
    add("ask_user", ask_user, toolbox=toolbox, gate=gate, replies=deciders.replies)
    add("execute_tool", execute_tool, toolbox=toolbox, gate=gate)
    add("inject_result", inject_result)
    add("respond", respond, decider=deciders.responder, toolbox=toolbox)

    graph.add_edge(START, "open_packet")
    branch("open_packet", after_opening)
    branch("detect_intent", after_intent)
    graph.add_edge("build_palette", "select_tool")
    branch("select_tool", after_selection)
    branch("review_selection", after_review)
    branch("ask_user", after_asking)
    branch("execute_tool", after_execution)
    branch("inject_result", after_injection)
    graph.add_node("put_back", InlineNode(lambda packet: with_thread_messages(packet, put_back(packet)), "put_back"))
    branch("respond", after_answering)
    graph.add_edge("put_back", "ask_user")
    return graph
