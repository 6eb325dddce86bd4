"""The model's list of tools in the middleware: all tools if there are few, or a list that only grows."""

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
from contract.model import ScriptedModel
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ModelRequest, ProviderToolSearchMiddleware
from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatResult
from langchain_core.tools import BaseTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_config

from packetgate.middleware import MAX_TOOLS, SEARCH, PacketgateMiddleware
from packetgate.state.errors import ConfigError
from packetgate.toolsets.servers.functions import reads, to_langchain_tool

THINGS = "river mountain recipe invoice poem planet train museum song bird ticket order flight hotel parcel".split()
PLACES = "library garden station harbour office school theatre market hospital factory airport castle park bank".split()
SUBJECTS = [
    "river garden",
    "invoice bank",
    "train station",
    "bird park",
    "flight airport",
    "poem library",
    "song school",
]


def lookup(thing: str, place: str) -> BaseTool:
    def look(name: str) -> str:
        return f"{name} is found"

    look.__name__, look.__doc__ = f"find_{thing}_{place}", f"Finds a {thing} of the {place} by its name."
    return to_langchain_tool(reads(look))


def lookups(number: int) -> list[BaseTool]:
    return [lookup(thing, place) for thing in THINGS for place in PLACES][:number]


def agent_of(model: ScriptedModel, tools: Sequence[Any], saver: InMemorySaver | None = None, **given: Any) -> Any:
    gate = PacketgateMiddleware(tools, **given)
    return create_agent(model, middleware=[gate], checkpointer=saver or InMemorySaver())


def say(agent: Any, words: str) -> Any:
    return agent.invoke({"messages": [HumanMessage(words)]}, {"configurable": {"thread_id": "one"}})


def result_texts(state: Any) -> list[str]:
    return [one.text for one in state["messages"] if isinstance(one, ToolMessage)]


@pytest.mark.parametrize("number", [3, MAX_TOOLS])
def test_a_few_tools_are_all_shown_in_their_order(number: int) -> None:
    model, tools = ScriptedModel(steps=[]), lookups(number)
    agent = agent_of(model, tools)
    for subject in SUBJECTS[:3]:
        say(agent, f"Find the {subject}")
    assert model.shown == [[one.name for one in tools]] * 3


def test_the_list_of_a_thread_only_grows_also_after_a_restart() -> None:
    model, saver = ScriptedModel(steps=[]), InMemorySaver()
    for subject in SUBJECTS:
        thing, place = subject.split()
        say(agent_of(model, lookups(200), saver), f"Find the {thing} called Anna of the {place}")
        assert f"find_{thing}_{place}" in model.shown[-1]
    assert all(later[: len(earlier)] == earlier for earlier, later in zip(model.shown, model.shown[1:], strict=False))
    assert all(one.count(SEARCH) == 1 and len(one) <= MAX_TOOLS for one in model.shown)
    say(agent_of(model, lookups(200), saver), "Thank you!")
    assert model.shown[-1] == model.shown[-2]


def test_a_search_puts_tools_on_the_list() -> None:
    search = (SEARCH, {"query": "find a parcel at the harbour"})
    model = ScriptedModel(steps=[[search], [("find_parcel_harbour", {"name": "x"})]])
    state = say(agent_of(model, lookups(210)), "Find the bird called Anna of the park")
    first, second, third = model.shown
    assert "find_parcel_harbour" not in first
    assert "find_parcel_harbour" in second
    assert second[: len(first)] == first
    assert third == second
    assert result_texts(state)[1] == "x is found"


class Tenants(AgentMiddleware[Any, Any, Any]):
    """Adds a tool to each request, a different tool for each thread."""

    def wrap_model_call(self, request: ModelRequest[Any], handler: Any) -> Any:
        thread = get_config()["configurable"]["thread_id"]
        return handler(request.override(tools=[*request.tools, lookup("contract", thread)]))


def test_threads_that_alternate_find_their_own_tools() -> None:
    search = (SEARCH, {"query": "find a contract"})
    model, middleware = ScriptedModel(steps=[[search], [search]]), [Tenants(), PacketgateMiddleware(lookups(100))]
    agent = create_agent(model, middleware=middleware, checkpointer=InMemorySaver(), interrupt_before=["tools"])
    threads: Any = {name: {"configurable": {"thread_id": name}} for name in ("one", "two")}
    for thread in threads.values():
        agent.invoke({"messages": [HumanMessage("Find the bird called Anna of the park")]}, thread)
    found = {name: result_texts(agent.invoke(None, thread))[0] for name, thread in threads.items()}
    assert {name for name, text in found.items() if f"find_contract_{name}" in text} == {*threads}
    assert "find_contract_two" not in found["one"]


def test_a_tool_that_is_not_on_the_list_is_refused_and_then_listed() -> None:
    call = ("find_parcel_harbour", {"name": "x"})
    model = ScriptedModel(steps=[[call], [call]])
    state = say(agent_of(model, lookups(210)), "Find the bird called Anna of the park")
    refused, result = result_texts(state)
    assert "It is on the list now" in refused
    assert result == "x is found"
    assert model.shown[1] == [*model.shown[0], "find_parcel_harbour"]


def test_without_selection_all_tools_are_shown() -> None:
    model, tools = ScriptedModel(steps=[]), lookups(100)
    say(agent_of(model, tools, select=False), "Find the bird called Anna of the park")
    assert model.shown == [[one.name for one in tools]]


def test_a_tool_of_the_same_name_as_the_search_is_an_error() -> None:
    def search_tools(query: str) -> str:
        """Search the tools of a workshop."""
        return query

    with pytest.raises(ConfigError, match="search_tools"):
        say(agent_of(ScriptedModel(steps=[]), [*lookups(100), search_tools]), "Find a hammer")


class Hosted(ScriptedModel):
    """A model whose provider can search tools."""

    sent: Any = ()

    def _get_ls_params(self, *_: Any, **more: Any) -> Any:
        return {"ls_provider": "openai"}

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        self.sent = tools
        return super().bind_tools([one for one in tools if isinstance(one, BaseTool)])

    def _generate(self, messages: list[BaseMessage], *_: Any, **options: Any) -> ChatResult:
        return super()._generate(messages, **options)


PROVIDERS: dict[str, Callable[[list[BaseTool]], list[Any]]] = {
    "asked for": lambda tools: [PacketgateMiddleware(tools, select="provider")],
    "by LangChain's middleware": lambda tools: [
        ProviderToolSearchMiddleware(searchable_tools=[*tools[8:]]), PacketgateMiddleware(tools)
    ],
}  # fmt: skip


@pytest.mark.parametrize("provider", PROVIDERS.values(), ids=PROVIDERS)
def test_the_provider_searches_the_tools(provider: Any) -> None:
    tools = lookups(100)
    model = Hosted(steps=[[("find_invoice_bank", {"name": "x"})]])
    agent = create_agent(model, middleware=provider(tools), checkpointer=InMemorySaver())
    state = say(agent, "Find the river called Anna of the library")
    deferred = [one.name for one in model.sent if isinstance(one, BaseTool) and (one.extras or {}).get("defer_loading")]
    assert (len(deferred), model.sent[-1]) == (92, {"type": "tool_search"})
    assert "find_river_library" not in deferred
    assert result_texts(state) == ["x is found"]


def test_the_vectors_of_many_tools_are_kept_for_later_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PACKETGATE_HOME", str(tmp_path))
    tools = lookups(70)
    agent_of(ScriptedModel(steps=[]), tools)
    deadline = monotonic() + 60
    while stored_vectors(tmp_path / "vectors.db") < len(tools):
        assert monotonic() < deadline
        sleep(0.1)


def stored_vectors(file: Path) -> int:
    """Return the number of vectors in a file."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
        return int(database.execute("SELECT count(*) FROM vectors").fetchone()[0])
    return 0
