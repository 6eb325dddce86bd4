"""A user's program that strict type checkers accept, except for its last two calls."""

from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command

from packetgate.middleware import PacketgateMiddleware
from packetgate.router import Question, Router, Turn, create_router, reads


@reads
def late_orders(days: int = 10) -> list[str]:
    """List the orders that are late."""
    return [f"A-{days}"]


async def cancel_order(order: str) -> str:
    """Cancel an order."""
    return f"cancelled {order}"


def decide(question: Question) -> Turn:
    return question.approve() if question.calls else question.respond("A-17")


def ask_router() -> tuple[str, list[tuple[str, str]]]:
    orders: list[str] = late_orders(days=3)
    with create_router("openai:gpt-5-mini", [late_orders, cancel_order], settings={"max_reinjections": 2}) as router:
        turn = router.invoke(f"Cancel order {orders[0]}", thread="ada")
        while turn.question:
            turn = decide(turn.question)
    return turn.answer, [(call.tool_name, call.status.value) for call in turn.calls]


def ask_parent(router: Router) -> Any:
    parent = StateGraph(MessagesState).add_node("route", router.graph).add_edge(START, "route")
    thread: RunnableConfig = {"configurable": {"thread_id": "ada"}}
    return parent.compile(checkpointer=InMemorySaver()).invoke({"messages": [HumanMessage("Cancel A-17")]}, thread)


def ask_agent() -> dict[str, Any]:
    gate = PacketgateMiddleware([late_orders, cancel_order])
    agent = create_agent("openai:gpt-5-mini", middleware=[gate], checkpointer=InMemorySaver())
    thread: RunnableConfig = {"configurable": {"thread_id": "ada"}}
    agent.invoke({"messages": [HumanMessage("Cancel order A-17")]}, thread)
    state: dict[str, Any] = agent.invoke(Command(resume="approve"), thread)
    return state


create_router(tools=[3])
PacketgateMiddleware([late_orders], maximum=3)
