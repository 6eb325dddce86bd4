"""`router.graph` as a node of a parent graph that has its own state and context, and nodes before and after."""

from dataclasses import dataclass

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command

from packetgate.router import create_router


@dataclass
class Tenant:
    """The parent's context."""

    name: str


class State(MessagesState):
    """The parent's state: the router reads and writes `messages`."""

    note: str


def cancel_order(order: str) -> str:
    """Cancel an order."""
    return f"cancelled {order}"


def greet(state: State, runtime: Runtime[Tenant]) -> dict[str, str]:
    """Run before the router."""
    return {"note": f"for {runtime.context.name}"}


def sign(state: State) -> dict[str, str]:
    """Run after the router."""
    return {"note": f"{state['note']}: {state['messages'][-1].text}"}


parent = StateGraph(State, context_schema=Tenant)
router = create_router(tools=[cancel_order], settings={"allow_write_tools": True})
parent.add_sequence([("greet", greet), ("route", router.graph), ("sign", sign)])
parent.add_edge(START, "greet")
app = parent.compile(checkpointer=InMemorySaver())
thread = {"configurable": {"thread_id": "1"}}
state = app.invoke({"messages": [HumanMessage("Cancel order A-17")]}, thread, context=Tenant("ada"))
print(state["__interrupt__"][0].value["action_requests"][0]["args"])
print(app.invoke(Command(resume="approve"), thread, context=Tenant("ada"))["note"])
