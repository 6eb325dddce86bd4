"""The diagram: nine stages, one edge a line."""

from functools import partial

from langgraph.graph import END, START, StateGraph

from deciders.protocols import Deciders
from graph.failures import review_failed
from graph.instruments import staged
from graph.routes import after_asking, after_intent, after_review, after_selection
from nodes.ask_user import ask_user
from nodes.build_palette import build_palette
from nodes.detect_intent import detect_intent
from nodes.execute_tool import execute_tool
from nodes.inject_result import inject_result
from nodes.open_packet import open_packet
from nodes.respond import respond
from nodes.review_selection import review_selection
from nodes.select_tool import select_tool
from state.context import RoutingContext
from state.packet import CognitionPacket, OpeningPacket, TurnInput
from tools.toolbox import Toolbox

Builder = StateGraph[CognitionPacket, RoutingContext, TurnInput, CognitionPacket]


def build_graph(deciders: Deciders, toolbox: Toolbox) -> Builder:
    """Return the graph, not yet compiled: compile it with a checkpointer to be able to ask the user."""
    graph: Builder = StateGraph(CognitionPacket, RoutingContext, input_schema=TurnInput, output_schema=CognitionPacket)

    graph.add_node("open_packet", staged("open_packet", open_packet), input_schema=OpeningPacket)
    graph.add_node(
        "detect_intent", staged("detect_intent", partial(detect_intent, decider=deciders.intent, toolbox=toolbox))
    )
    graph.add_node("build_palette", staged("build_palette", partial(build_palette, toolbox=toolbox)))
    graph.add_node(
        "select_tool", staged("select_tool", partial(select_tool, decider=deciders.selector, toolbox=toolbox))
    )
    graph.add_node(
        "review_selection",
        staged("review_selection", partial(review_selection, decider=deciders.reviewer, toolbox=toolbox)),
        error_handler=review_failed,
    )
    graph.add_node("ask_user", staged("ask_user", partial(ask_user, toolbox=toolbox)))
    graph.add_node("execute_tool", staged("execute_tool", partial(execute_tool, toolbox=toolbox)))
    graph.add_node("inject_result", staged("inject_result", inject_result))
    graph.add_node("respond", staged("respond", partial(respond, decider=deciders.responder, toolbox=toolbox)))

    graph.add_edge(START, "open_packet")
    graph.add_edge("open_packet", "detect_intent")
    graph.add_conditional_edges("detect_intent", after_intent)
    graph.add_edge("build_palette", "select_tool")
    graph.add_conditional_edges("select_tool", after_selection)
    graph.add_conditional_edges("review_selection", after_review)
    graph.add_conditional_edges("ask_user", after_asking)
    graph.add_edge("execute_tool", "inject_result")
    graph.add_edge("inject_result", "detect_intent")
    graph.add_edge("respond", END)
    return graph
