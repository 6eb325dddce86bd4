"""`langgraph dev` serves the exported graph with its assistants, and a user's own router."""

import json
import re
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk.client import LangGraphClient
from support.langgraph_server import GRAPH, LangGraphServer, ask, reply, serve_own_app, turn_input
from support.pages import ROOT

from packetgate.deciders.choosing import reflex_deciders
from packetgate.graph.building import build_graph
from packetgate.toolsets.servers.hub import McpHub


def test_a_write_runs_after_approval(langgraph_server: LangGraphServer) -> None:
    target = langgraph_server.root / "written.txt"

    async def conversation(client: LangGraphClient) -> Any:
        thread, first = await ask(client, 'Write "hello owl" to written.txt', allow_write_tools=True)
        question = first["__interrupt__"][0]["value"]
        waiting = await client.threads.get(thread)
        before = target.exists()
        done = await reply(client, thread, {"decisions": [{"type": "approve"}]}, allow_write_tools=True)
        return question, waiting["status"], before, done

    question, waiting, before, done = langgraph_server.talk(conversation)
    assert waiting == "interrupted"
    assert not before
    assert [request["name"] for request in question["action_requests"]] == ["ai.write"]
    assert done["tool_routing"]["calls"][0]["status"] == "executed"
    assert target.read_text() == "hello owl"


def test_a_configured_server_is_used(langgraph_server: LangGraphServer) -> None:
    _, packet = langgraph_server.talk(lambda client: ask(client, "Get the process number of the clock"))
    assert "process number " in packet["messages"][-1]["content"]


READ, WRITE = "Read notes.txt", 'Write "hello" to assistant.txt'


@dataclass(frozen=True)
class Case:
    """An assistant, a request, and the status of its first call after the run."""

    context: dict[str, Any]
    request: str
    status: str | None
    run: dict[str, Any] = field(default_factory=dict)
    """The context of the run."""


CASES = {
    "lenient": Case({"confidence_threshold": 0.5}, READ, "executed"),
    "strict": Case({"confidence_threshold": 0.99}, READ, "awaiting_confidence"),
    "strict and silent": Case({"confidence_threshold": 0.99, "on_low_confidence": "skip"}, READ, "skipped"),
    "writing": Case({"allow_write_tools": True}, WRITE, "awaiting_approval"),
    "reading": Case({"allow_write_tools": False}, WRITE, "skipped"),
    "switched off": Case({"enabled": False}, READ, None),
    "the run's word counts": Case({"confidence_threshold": 0.99}, READ, "executed", run={"confidence_threshold": 0.5}),
    "the rest is the assistant's": Case(
        {"confidence_threshold": 0.99, "on_low_confidence": "skip"}, READ, "skipped", run={"max_reinjections": 2}
    ),
    "each field for itself": Case(
        {"confidence_threshold": 0.99, "on_low_confidence": "skip"},
        READ,
        "awaiting_confidence",
        run={"on_low_confidence": "ask"},
    ),
}


@asynccontextmanager
async def assistant(client: LangGraphClient, context: Any) -> AsyncIterator[str]:
    """Create an assistant, and delete it afterwards."""
    made = (await client.assistants.create(GRAPH, context=context))["assistant_id"]
    try:
        yield made
    finally:
        await client.assistants.delete(made)


def status_of(packet: Any) -> str | None:
    routing = packet["tool_routing"]
    return (routing["past_calls"] + routing["calls"])[0]["status"] if routing else None


@pytest.mark.parametrize("name", CASES)
def test_an_assistant_uses_its_context(langgraph_server: LangGraphServer, name: str) -> None:
    case = CASES[name]
    (langgraph_server.root / "notes.txt").write_text("the owl sleeps by day\n")

    async def conversation(client: LangGraphClient) -> Any:
        async with assistant(client, case.context) as made:
            return (await ask(client, case.request, made, **case.run))[1]

    packet = langgraph_server.talk(conversation)
    assert status_of(packet) == case.status
    assert ("__interrupt__" in packet) == (case.status in {"awaiting_confidence", "awaiting_approval"})
    assert not (langgraph_server.root / "assistant.txt").exists()


DESK, PARENT = "desk", "parent"
PROGRAM = '''"""A parent graph of the user's own, with a router as a node."""

from typing import Any

from langgraph.graph import START, MessagesState, StateGraph
from langgraph_server import graph

import packetgate


class State(MessagesState):
    header: Any
    context: Any
    packetgate: str


def origin(_: State) -> dict[str, str]:
    return {"packetgate": packetgate.__file__}


parent = StateGraph(State).add_sequence([("origin", origin), ("route", graph)]).add_edge(START, "origin").compile()
'''


@pytest.fixture(scope="module")
def own_app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LangGraphServer]:
    folder = tmp_path_factory.mktemp("own") / "app"
    folder.mkdir()
    for name in ("langgraph_server.py", "garden_server.py", "mcp.json"):
        shutil.copy(ROOT / "docs" / "recipes" / name, folder)
    section = (ROOT / "docs" / "python.md").read_text().partition("\n## On a LangGraph server\n")[2]
    (config,) = map(json.loads, re.findall(r"```json\n(.*?)```", section.partition("\n## ")[0], re.DOTALL))
    config["graphs"][PARENT] = "./parent.py:parent"
    (folder / "langgraph.json").write_text(json.dumps(config))
    (folder / "parent.py").write_text(PROGRAM)
    with serve_own_app(folder) as server:
        yield server
        assert server.alarms() == []


def test_a_router_answers_under_langgraph_dev(own_app: LangGraphServer) -> None:
    async def conversation(client: LangGraphClient) -> Any:
        thread, read = await ask(client, "List the flower beds of the garden", DESK)
        asked = await client.runs.wait(thread, DESK, input=turn_input("Cancel order A-17"))
        done = await reply(client, thread, {"decisions": [{"type": "approve"}]}, DESK)
        _, dry = await ask(client, "Cancel order B-4", DESK, allow_write_tools=False)
        with pytest.raises(Exception, match="a command cannot update 'governance'"):
            await client.runs.wait(thread, DESK, command={"update": {"governance": {}}})
        return read, asked, done, dry

    read, asked, done, dry = own_app.talk(conversation)
    assert "roses" in read["messages"][-1]["content"]
    (request,) = asked["__interrupt__"][0]["value"]["action_requests"]
    assert (request["name"], request["args"]) == ("functions.cancel_order", {"order": "A-17"})
    assert "cancelled A-17" in done["messages"][-1]["content"]
    assert "Dry run" in dry["messages"][-1]["content"]


@pytest.mark.parametrize("name", [DESK, PARENT])
def test_a_turn_of_an_own_app_knows_the_turn_before(own_app: LangGraphServer, name: str) -> None:
    async def conversation(client: LangGraphClient) -> Any:
        thread, first = await ask(client, "List the flower beds of the garden", name)
        asked = await client.runs.wait(thread, name, input=turn_input("Cancel order A-17"))
        return first, asked, await reply(client, thread, "approve", name)

    first, asked, second = own_app.talk(conversation)
    assert asked["__interrupt__"]
    assert "cancelled A-17" in second["messages"][-1]["content"]
    assert second["header"]["parent_packet_id"] == first["header"]["packet_id"]
    assert "garden.list_beds" in second["context"]["recent_tools"]
    if name == PARENT:
        assert Path(second["packetgate"]).is_relative_to(own_app.log_file.parent), "not the wheel"


@pytest.mark.parametrize("name", [DESK, PARENT])
def test_the_drawing_of_an_own_app_has_all_stages(own_app: LangGraphServer, name: str) -> None:
    drawn = own_app.talk(lambda client: client.assistants.get_graph(name, xray=True))
    names = {node["id"].removeprefix("route:") for node in drawn["nodes"]}
    assert names >= {*build_graph(reflex_deciders(), McpHub([])).nodes}
