"""`langgraph dev` serves the exported graph, and the LangGraph SDK talks to it over HTTP."""

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from langgraph_sdk.client import LangGraphClient
from support.langgraph_server import LangGraphServer, serve_langgraph

GRAPH = "packetgate"
ALARMS = ("BlockingError", "Blocking call", "unregistered type", "Blocked deserialization")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LangGraphServer]:
    with serve_langgraph(tmp_path_factory.mktemp("server")) as server:
        yield server
        alarms = [line for line in server.log().splitlines() if any(alarm in line for alarm in ALARMS)]
        assert not alarms


def said(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


async def ask(client: LangGraphClient, text: str, **context: Any) -> tuple[str, Any]:
    """Return the thread and the state that a new thread's first turn ends in."""
    thread = await client.threads.create()
    return thread["thread_id"], await client.runs.wait(thread["thread_id"], GRAPH, input=said(text), context=context)


async def reply(client: LangGraphClient, thread: str, decision: Any, **context: Any) -> Any:
    return await client.runs.wait(thread, GRAPH, command={"resume": decision}, context=context)


def test_a_read_is_answered_from_the_real_file(server: LangGraphServer) -> None:
    (server.root / "notes.txt").write_text("the owl sleeps by day\n")
    _, packet = server.talk(lambda client: ask(client, "Read notes.txt"))
    assert packet["status"]["state"] == "completed"
    assert [call["status"] for call in packet["tool_routing"]["calls"]] == ["executed"]
    assert "the owl sleeps by day" in packet["messages"][-1]["content"]


def test_a_write_waits_for_approval_and_then_happens(server: LangGraphServer) -> None:
    target = server.root / "written.txt"

    async def conversation(client: LangGraphClient) -> Any:
        thread, first = await ask(client, 'Write "hello owl" to written.txt', allow_write_tools=True)
        question = first["__interrupt__"][0]["value"]
        waiting = await client.threads.get(thread)
        before = target.exists()
        done = await reply(client, thread, {"decisions": [{"type": "approve"}]}, allow_write_tools=True)
        return question, waiting["status"], before, done

    question, waiting, before, done = server.talk(conversation)
    assert waiting == "interrupted"
    assert not before
    assert [request["name"] for request in question["action_requests"]] == ["ai.write"]
    assert done["tool_routing"]["calls"][0]["status"] == "executed"
    assert target.read_text() == "hello owl"


def test_a_rejected_write_does_not_happen(server: LangGraphServer) -> None:
    async def conversation(client: LangGraphClient) -> Any:
        thread, _ = await ask(client, 'Write "no" to unwanted.txt', allow_write_tools=True)
        return await reply(client, thread, [{"type": "ignore"}], allow_write_tools=True)

    packet = server.talk(conversation)
    assert packet["tool_routing"]["calls"][0]["status"] == "skipped"
    assert not (server.root / "unwanted.txt").exists()


def test_a_second_turn_knows_the_first(server: LangGraphServer) -> None:
    (server.root / "first.txt").write_text("one\n")

    async def conversation(client: LangGraphClient) -> Any:
        thread, first = await ask(client, "Read first.txt")
        return first, await client.runs.wait(thread, GRAPH, input=said("Hello"))

    first, second = server.talk(conversation)
    assert second["header"]["parent_packet_id"] == first["header"]["packet_id"]
    assert second["context"]["recent_tools"] == ["ai.read"]
    assert len(second["messages"]) == 4


def test_a_configured_server_is_routed_to(server: LangGraphServer) -> None:
    _, packet = server.talk(lambda client: ask(client, "Get the process number of the clock"))
    assert "process number " in packet["messages"][-1]["content"]


def test_stages_are_streamed(server: LangGraphServer) -> None:
    async def conversation(client: LangGraphClient) -> list[str]:
        events = client.runs.stream(None, GRAPH, input=said("Hello"), stream_mode="custom")
        return [event.data["stage"] async for event in events if event.event == "custom"]

    assert set(server.talk(conversation)) == {"open_packet", "detect_intent", "respond"}


def test_the_context_is_a_form(server: LangGraphServer) -> None:
    async def conversation(client: LangGraphClient) -> Any:
        (assistant,) = await client.assistants.search(graph_id=GRAPH)
        return await client.assistants.get_schemas(assistant["assistant_id"])

    schemas = server.talk(conversation)
    form = schemas["context_schema"]["properties"]
    assert all(field["description"] for field in form.values())
    threshold = form["confidence_threshold"]
    assert (threshold["default"], threshold["minimum"], threshold["maximum"]) == (0.7, 0.0, 1.0)
    assert form["on_low_confidence"]["enum"] == ["ask", "skip"]
    assert "messages" in json.dumps(schemas["input_schema"])


def test_a_context_out_of_range_is_refused(server: LangGraphServer) -> None:
    with pytest.raises(Exception, match="confidence_threshold"):
        server.talk(lambda client: ask(client, "Read notes.txt", confidence_threshold=7))


def test_an_edit_that_cannot_run_is_asked_about_again(server: LangGraphServer) -> None:
    async def conversation(client: LangGraphClient) -> Any:
        thread, _ = await ask(client, 'Write "no" to unwanted.txt', allow_write_tools=True)
        edit = {"type": "edit", "edited_action": {"name": "ai.wipe", "args": {}}}
        return await reply(client, thread, {"decisions": [edit]}, allow_write_tools=True)

    asked = server.talk(conversation)
    assert "There is no tool `ai.wipe`" in asked["__interrupt__"][0]["value"]["problem"]


def test_a_turn_is_recorded_in_the_servers_own_store(server: LangGraphServer) -> None:
    async def conversation(client: LangGraphClient) -> Any:
        thread, packet = await ask(client, "Hello")
        return packet, await client.store.search_items(["packetgate", "usage", thread])

    packet, found = server.talk(conversation)
    (item,) = found["items"]
    assert (item["key"], item["value"]["asked"]) == (packet["header"]["packet_id"], "Hello")


def test_there_was_no_network(server: LangGraphServer) -> None:
    if not server.isolated:
        pytest.skip("only root can take the network away; without it, the server's proxies lead nowhere")
    with pytest.raises(OSError, match="unreachable"):
        server.within(lambda: socket.create_connection(("192.0.2.1", 443), timeout=5))
