"""A process for one turn of a parent graph with a router, which stores its sessions in the current folder.

The arguments are the thread, the user message, and the answers of the model.
"""

import sys

from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph

from packetgate.deciders.protocols import Review
from packetgate.router import create_router, reads
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket
from packetgate.tools.catalogue.catalogue import Catalogue


@reads
def read_diary() -> str:
    """Read the diary."""
    return "The code of the safe is 4711."


@tool
def open_page(url: str) -> str:
    """Open a web page."""
    return "a page"


open_page.metadata = {"readOnlyHint": True}


async def approve(packet: CognitionPacket, catalogue: Catalogue, settings: RoutingContext) -> Review:
    """Approve every call, so that only the gate's other checks can stop a call."""
    return Review.approving(packet.routing.calls, "approved")


def main(thread: str, words: str, *answers: str) -> None:
    """Print whether the turn asks a question or answers."""
    model = FakeListChatModel(responses=[*answers, "Done."])
    router = create_router(model, [read_diary, open_page], journal="journal.db", deciders={"reviewer": approve})
    parent = StateGraph(MessagesState).add_node("route", router.graph).add_edge(START, "route")
    with SqliteSaver.from_conn_string("sessions.db") as checkpointer:
        app = parent.compile(checkpointer=checkpointer)
        state = app.invoke({"messages": [HumanMessage(words)]}, {"configurable": {"thread_id": thread}})
    sys.stdout.write("asks" if "__interrupt__" in state else state["messages"][-1].text.partition("\n")[0])


if __name__ == "__main__":
    main(*sys.argv[1:])
