"""The middleware in place of LangChain's `HumanInTheLoopMiddleware`, and with LangChain's other middlewares."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from contract.model import ScriptedModel
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    ModelRequest,
    ToolErrorMiddleware,
    ToolRetryMiddleware,
    hook_config,
)
from langchain.agents.middleware.todo import TodoListMiddleware
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatResult
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import ValidationError

from packetgate.middleware import PacketgateMiddleware
from packetgate.toolsets.servers.functions import reads

CONFIG: Any = {"configurable": {"thread_id": "one"}}
WORDS = "Write to mia@example.org: it is late. Then send a copy to ben@example.org."


class Mailbox:
    """A tool that records the addresses of its mails, and two tools that record nothing."""

    def __init__(self) -> None:
        self.sent: list[str] = []

        @tool
        def send_mail(to: str, text: str = "") -> str:
            """Sends a mail."""
            self.sent.append(to)
            return f"sent to {to}"

        @tool
        def delete_mail(to: str, text: str = "") -> str:
            """Deletes a mail."""
            self.sent.append(f"deleted {to}")
            return f"deleted {to}"

        self.tools: list[BaseTool] = [send_mail, delete_mail]


def mail(to: str) -> tuple[str, dict[str, Any]]:
    return "send_mail", {"to": to, "text": "it is late"}


MIA, BEN = mail("mia@example.org"), mail("ben@example.org")


def agent_of(model: ScriptedModel, tools: Sequence[Any], middleware: Sequence[Any]) -> Any:
    return create_agent(model, tools=[*tools], middleware=[*middleware], checkpointer=InMemorySaver())


def say(agent: Any, words: str = WORDS) -> Any:
    return agent.invoke({"messages": [HumanMessage(words)]}, CONFIG)


def reply(agent: Any, value: Any) -> Any:
    return agent.invoke(Command(resume=value), CONFIG)


def results(state: Any) -> list[ToolMessage]:
    return [one for one in state["messages"] if isinstance(one, ToolMessage)]


def result_fields(state: Any) -> list[tuple[str, str, Any]]:
    return [(one.text, one.status, one.additional_kwargs.get("lc_data")) for one in results(state)]


def in_order(asked: Sequence[Any]) -> list[Any]:
    """Return interrupts of calls that start together, those about `MIA` first."""
    return sorted(asked, key=lambda one: one.value.get("args") != MIA[1])


EDIT = {"type": "edit", "edited_action": {"name": "send_mail", "args": {"to": "eve@example.org"}}}
DECISIONS: dict[str, dict[str, Any]] = {
    "approve": {"type": "approve"},
    "edit": EDIT,
    "reject": {"type": "reject"},
    "reject with a reason": {"type": "reject", "message": "not today"},
    "respond": {"type": "respond", "message": "I have told her"},
}


@pytest.mark.parametrize("mode", ["batched", "per_call"])
@pytest.mark.parametrize("decision", DECISIONS.values(), ids=DECISIONS)
def test_the_decisions_do_what_langchains_middleware_does(decision: dict[str, Any], mode: Any) -> None:
    seen = []
    for middleware in (
        HumanInTheLoopMiddleware({"send_mail": True}, interrupt_mode=mode),
        PacketgateMiddleware(interrupt_mode=mode),
    ):
        box, model = Mailbox(), ScriptedModel(steps=[[MIA, BEN]])
        agent = agent_of(model, box.tools, [middleware])
        asked = in_order(say(agent)["__interrupt__"])
        answers = [decision, {"type": "approve"}]
        if mode == "batched":
            value: Any = {"decisions": answers}
            requests = asked[0].value["action_requests"]
            described = [(one["name"], one["args"]) for one in requests]
        else:
            value = {one.id: answer for one, answer in zip(asked, answers, strict=True)}
            described = [(one.value["type"], one.value["tool_call_id"], one.value["args"]) for one in asked]
            assert all(one.response_schema for one in asked)
        seen.append((described, result_fields(reply(agent, value)), sorted(box.sent)))
    theirs, ours = seen
    assert ours == theirs


def test_a_call_that_is_edited_to_another_tool_runs_that_tool() -> None:
    box = Mailbox()
    agent = agent_of(ScriptedModel(steps=[[MIA]]), [], [PacketgateMiddleware(box.tools)])
    say(agent)
    edit = {"type": "edit", "edited_action": {"name": "delete_mail", "args": {"to": "mia@example.org"}}}
    (result,) = results(reply(agent, {"decisions": [edit]}))
    assert (box.sent, result.name) == (["deleted mia@example.org"], "delete_mail")


def test_per_call_refuses_a_reply_of_another_form() -> None:
    box = Mailbox()
    agent = agent_of(ScriptedModel(steps=[[MIA]]), box.tools, [PacketgateMiddleware(interrupt_mode="per_call")])
    (asked,) = say(agent)["__interrupt__"]
    other = {"type": "edit", "edited_action": {"name": "delete_mail", "args": {}}}
    for wrong in ("maybe", {"type": "dance"}, other):
        with pytest.raises(ValidationError):
            reply(agent, {asked.id: wrong})
    reply(agent, {asked.id: {"type": "approve"}})
    assert box.sent == ["mia@example.org"]


def test_a_call_is_asked_about_once_if_another_task_of_the_step_waits_longer() -> None:
    box, model = Mailbox(), ScriptedModel(steps=[[MIA, BEN]])
    agent = agent_of(model, box.tools, [PacketgateMiddleware(interrupt_mode="per_call")])
    first, second = in_order(say(agent)["__interrupt__"])
    (left,) = reply(agent, {first.id: {"type": "approve"}})["__interrupt__"]
    assert left.id == second.id
    assert [text for text, *_ in result_fields(reply(agent, {second.id: {"type": "approve"}}))] == [
        "sent to mia@example.org",
        "sent to ben@example.org",
    ]
    assert sorted(box.sent) == ["ben@example.org", "mia@example.org"]


@pytest.mark.parametrize("retry_is_outside", [True, False])
def test_exceptions_reach_the_other_middlewares(*, retry_is_outside: bool) -> None:
    tries = []

    @reads
    def check_weather(city: str) -> str:
        """Checks the weather in a city."""
        tries.append(city)
        raise ValueError("the station burned down")

    retry = ToolRetryMiddleware(max_retries=2, initial_delay=0, on_failure="error")
    errors = ToolErrorMiddleware(lambda error, _: f"sorry: {error}")
    gate = PacketgateMiddleware([check_weather])
    model = ScriptedModel(steps=[[("check_weather", {"city": "Ghent"})]])
    agent = agent_of(model, [], [errors, *([retry, gate] if retry_is_outside else [gate, retry])])
    state = say(agent, "How is the weather in Ghent?")
    assert [(text, status) for text, status, _ in result_fields(state)] == [("sorry: the station burned down", "error")]
    assert tries == ["Ghent"] * 3


def test_a_change_that_raised_is_asked_about_before_it_is_retried() -> None:
    tries = []

    @tool
    def send_mail(to: str, text: str) -> str:
        """Sends a mail."""
        tries.append(to)
        if len(tries) == 1:
            raise TimeoutError("no answer")
        return "sent"

    retry = ToolRetryMiddleware(max_retries=2, initial_delay=0)
    agent = agent_of(ScriptedModel(steps=[[MIA]]), [], [retry, PacketgateMiddleware([send_mail])])
    say(agent)
    state = reply(agent, {"decisions": [{"type": "approve"}]})
    assert tries == ["mia@example.org"]
    assert "run it again?" in state["__interrupt__"][0].value["action_requests"][0]["description"]
    assert [text for text, *_ in result_fields(reply(agent, {"decisions": [{"type": "approve"}]}))] == ["sent"]


class RunTime(AgentMiddleware[Any, Any, Any]):
    """Adds a tool at run time, as in LangChain's documentation."""

    def __init__(self, added: BaseTool) -> None:
        super().__init__()
        self.added = added

    def wrap_model_call(self, request: ModelRequest[Any], handler: Any) -> Any:
        return handler(request.override(tools=[*request.tools, self.added]))

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        is_added = request.tool_call["name"] == self.added.name
        return handler(request.override(tool=self.added) if is_added else request)


class WithTool(AgentMiddleware[Any, Any, Any]):
    """Adds a fixed tool."""

    def __init__(self, tool: BaseTool) -> None:
        super().__init__()
        self.tools = [tool]


WAYS: dict[str, Callable[[BaseTool], tuple[list[Any], list[Any]]]] = {
    "create_agent": lambda one: ([one], [PacketgateMiddleware()]),
    "a middleware before": lambda one: ([], [WithTool(one), PacketgateMiddleware()]),
    "a middleware after": lambda one: ([], [PacketgateMiddleware(), WithTool(one)]),
    "run time": lambda one: ([], [RunTime(one), PacketgateMiddleware()]),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_a_tool_from_another_source_is_a_write_that_needs_approval(way: Any, decision: str) -> None:
    ran = []

    @tool
    def get_price(name: str) -> str:
        """Gets a price."""
        ran.append(name)
        return "7 euros"

    get_price.metadata = {"readOnlyHint": True, "packetgate_reads": "true"}  # any server can send this
    tools, middleware = way(get_price)
    saver, steps = InMemorySaver(), [[("get_price", {"name": "tea"})]]
    create = lambda: create_agent(ScriptedModel(steps=steps), tools, middleware=middleware, checkpointer=saver)  # noqa: E731
    state = say(create(), "What is the price of tea?")
    assert ran == []
    assert state["__interrupt__"][0].value["action_requests"][0]["name"] == "get_price"
    tools, middleware = way(get_price)  # as after a restart
    state = reply(create(), {"decisions": [{"type": decision}]})
    assert ran == (["tea"] if decision == "approve" else [])
    assert (result_fields(state)[0][0] == "7 euros") is (decision == "approve")


def test_a_tool_that_a_later_middleware_adds_is_refused_with_a_fix() -> None:
    box = Mailbox()
    agent = agent_of(ScriptedModel(steps=[[MIA]]), [], [PacketgateMiddleware(), RunTime(box.tools[0])])
    assert "list it before PacketgateMiddleware" in result_fields(say(agent))[0][0]
    assert box.sent == []


def test_a_marked_read_from_another_source_runs() -> None:
    @reads
    def run_report(name: str) -> str:
        """Run a report."""
        return "all is well"

    agent = agent_of(ScriptedModel(steps=[[("run_report", {"name": "sales"})]]), [run_report], [PacketgateMiddleware()])
    assert result_fields(say(agent, "Run the sales report"))[0][0] == "all is well"


def test_langchains_own_tools_return_their_commands() -> None:
    todos = [{"content": "write", "status": "pending"}]
    model = ScriptedModel(steps=[[("write_todos", {"todos": todos})]])
    agent = agent_of(model, [], [TodoListMiddleware(), PacketgateMiddleware()])
    say(agent, "Plan the day")
    assert reply(agent, {"decisions": [{"type": "approve"}]})["todos"] == todos


class Numbered(ScriptedModel):
    """Gives every call of an answer the same id."""

    call_id: str | None = None

    def _generate(self, *given: Any, **more: Any) -> ChatResult:
        result = super()._generate(*given, **more)
        message = result.generations[0].message
        assert isinstance(message, AIMessage)
        message.tool_calls = [{**call, "id": self.call_id} for call in message.tool_calls]
        return result


@pytest.mark.parametrize("mode", ["batched", "per_call"])
@pytest.mark.parametrize("call_id", ["same", "", None])
def test_two_calls_with_the_same_id_or_no_id_are_two_calls(call_id: str | None, mode: Any) -> None:
    box = Mailbox()
    model = Numbered(steps=[[MIA, BEN]], call_id=call_id)
    agent = agent_of(model, box.tools, [PacketgateMiddleware(interrupt_mode=mode)])
    asked = in_order(say(agent)["__interrupt__"])
    answers = [{"type": "reject", "message": "no"}, {"type": "approve"}]
    by_id = {one.id: answer for one, answer in zip(asked, answers, strict=False)}
    state = reply(agent, {"decisions": answers} if mode == "batched" else by_id)
    assert box.sent == ["ben@example.org"]
    calls = next(one for one in state["messages"] if isinstance(one, AIMessage)).tool_calls
    by_call = {one.tool_call_id: one.status for one in results(state)}
    assert [by_call[str(call["id"])] for call in calls] == ["error", "success"]


def test_after_three_refusals_in_a_row_the_result_tells_the_model_to_hand_over() -> None:
    box = Mailbox()
    model = ScriptedModel(steps=[[mail(f"{name}@example.org")] for name in ("mia", "ben", "ann", "eve")])
    agent = agent_of(model, box.tools, [PacketgateMiddleware()])
    say(agent)
    for _ in range(2):
        state = reply(agent, {"decisions": [{"type": "reject"}]})
    assert not any("let them decide" in text for text, *_ in result_fields(state))
    state = reply(agent, {"decisions": [{"type": "reject"}]})
    assert "3 calls in a row were refused" in result_fields(state)[-1][0]
    reply(agent, {"decisions": [{"type": "approve"}]})
    assert box.sent == ["eve@example.org"]


class Jumping(AgentMiddleware[Any, Any, Any]):
    """Jumps to the tools after each call of the model."""

    @hook_config(can_jump_to=["tools"])
    def after_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        return {"jump_to": "tools"} if state["messages"][-1].type != "ai" or state["messages"][-1].tool_calls else None


@pytest.mark.parametrize("mode", ["batched", "per_call"])
@pytest.mark.parametrize("jumps_first", [True, False])
def test_a_jump_to_the_tools_runs_no_rejected_call(mode: Any, *, jumps_first: bool) -> None:
    box, model = Mailbox(), ScriptedModel(steps=[[MIA]])
    gate = PacketgateMiddleware(interrupt_mode=mode)
    agent = agent_of(model, box.tools, [gate, Jumping()] if jumps_first else [Jumping(), gate])
    state = say(agent)
    if asked := state.get("__interrupt__"):
        rejected = {"type": "reject", "message": "never"}
        state = reply(agent, {"decisions": [rejected]} if mode == "batched" else {asked[0].id: rejected})
    assert box.sent == []
    assert len(results(state)) == 1
    assert results(state)[0].status == "error"
