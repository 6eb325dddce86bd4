"""Data that a server gives LangGraph Studio: forms, the graph drawing, streams, and the packet in a thread's state."""

from typing import Any

import pytest
from langgraph_sdk.client import LangGraphClient
from support.langgraph_server import GRAPH, LangGraphServer, ask, turn_input
from support.prompts import NO_TOOL, call
from support.scripted_openai import ScriptedOpenAI

from packetgate.deciders.choosing import reflex_deciders
from packetgate.graph.building import build_graph
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket
from packetgate.toolsets.servers.hub import McpHub


@pytest.fixture
def schemas(langgraph_server: LangGraphServer) -> Any:
    async def conversation(client: LangGraphClient) -> Any:
        (assistant,) = await client.assistants.search(graph_id=GRAPH)
        return await client.assistants.get_schemas(assistant["assistant_id"])

    return langgraph_server.talk(conversation)


def test_the_context_is_a_form(schemas: Any) -> None:
    form = schemas["context_schema"]["properties"]
    assert list(form) == list(RoutingContext.model_fields)
    assert all(one["description"] and "default" in one for one in form.values())
    threshold = form["confidence_threshold"]
    assert (threshold["default"], threshold["minimum"], threshold["maximum"]) == (0.7, 0.0, 1.0)
    assert form["on_low_confidence"]["enum"] == ["ask", "skip"]
    numbers = [one for one in form.values() if one.get("type") in {"number", "integer"}]
    assert all({"minimum", "exclusiveMinimum"} & one.keys() and "maximum" in one for one in numbers)


@pytest.mark.parametrize("xray", [True, False])
def test_the_drawing_has_all_stages(langgraph_server: LangGraphServer, xray: bool) -> None:
    drawn = langgraph_server.talk(lambda client: client.assistants.get_graph(GRAPH, xray=xray))
    names = {node["id"] for node in drawn["nodes"]}
    assert names == {*build_graph(reflex_deciders(), McpHub([])).nodes, "__start__", "__end__"}
    assert {end for edge in drawn["edges"] for end in (edge["source"], edge["target"])} == names


def test_a_threads_state_is_its_packet(langgraph_server: LangGraphServer) -> None:
    async def conversation(client: LangGraphClient) -> Any:
        thread, _ = await ask(client, 'Write "hello" to unwritten.txt', allow_write_tools=True)
        return await client.threads.get_state(thread), await client.threads.get_history(thread)

    state, history = langgraph_server.talk(conversation)
    packet = CognitionPacket.model_validate({name: state["values"][name] for name in CognitionPacket.model_fields})
    assert packet.routing.selected_tool == "ai.write"
    assert state["next"] == ["ask_user"]
    assert len(history) == len(packet.reasoning.reflection_log) + 2


def test_stages_are_streamed_as_they_run(langgraph_server: LangGraphServer) -> None:
    async def conversation(client: LangGraphClient) -> list[tuple[str, str]]:
        events = client.runs.stream(None, GRAPH, input=turn_input("Hello"), stream_mode="custom")
        return [(event.data["stage"], event.data["type"]) async for event in events if event.event == "custom"]

    stages = ["open_packet", "detect_intent", "respond"]
    expected = [(stage, kind) for stage in stages for kind in ("stage_started", "stage_finished")]
    assert langgraph_server.talk(conversation) == expected


@pytest.mark.parametrize("mode", ["messages", "messages-tuple"])
def test_only_the_answer_is_streamed_as_messages(
    langgraph_server_with_model: tuple[LangGraphServer, ScriptedOpenAI], mode: Any
) -> None:
    """The model also decides intent, selection and review, which are not streamed."""
    server, model = langgraph_server_with_model
    (server.root / "notes.txt").write_text("the owl sleeps by day\n")
    read = call("ai.read", path="notes.txt")
    answer = "The owl sleeps by day, and that is all that the notes say."
    model.script(read, NO_TOOL, answer)

    async def conversation(client: LangGraphClient) -> list[Any]:
        events = client.runs.stream(None, GRAPH, input=turn_input("Read notes.txt"), stream_mode=mode)
        return [
            event.data[0] async for event in events if event.event.startswith("messages") and "meta" not in event.event
        ]

    pieces = [
        message["content"]
        for message in server.talk(conversation)
        if message["type"].startswith("AI") or message["type"] == "ai"
    ]
    assert not model.replies
    assert len(pieces) > 2
    assert ("".join(pieces) if mode == "messages-tuple" else pieces[-1]) == answer
    assert all(piece in answer for piece in pieces)
