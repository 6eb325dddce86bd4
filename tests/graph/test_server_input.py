"""A server refuses invalid input in one line that names the field, and changes nothing."""

from typing import Any

import httpx
import pytest
from langgraph_sdk.client import LangGraphClient
from support.langgraph_server import GRAPH, LangGraphServer, ask, turn_input

pytestmark = pytest.mark.xdist_group("langgraph")


@pytest.mark.parametrize(
    ("context", "names"),
    [
        ({"confidence_threshold": 9}, "context.confidence_threshold"),
        ({"confidense": 0.5}, "context.confidense"),
        ({"allowed_tools": [""]}, "context.allowed_tools.0"),
    ],
)
def test_unknown_settings_are_refused(langgraph_server: LangGraphServer, context: dict[str, Any], names: str) -> None:
    async def conversation(client: LangGraphClient) -> list[httpx.Response]:
        thread = (await client.threads.create())["thread_id"]
        assistant = (await client.assistants.create(GRAPH))["assistant_id"]
        http, run = client.http.client, {"assistant_id": GRAPH, "input": turn_input("Hello"), "context": context}
        answers = [
            await http.post("/assistants", json={"graph_id": GRAPH, "context": context}),
            await http.patch(f"/assistants/{assistant}", json={"context": context}),
            await http.post(f"/threads/{thread}/runs/wait", json=run),
            await http.post(f"/threads/{thread}/runs/stream", json=run),
            await http.post("/runs/batch", json=[{**run, "context": {}}, run]),
        ]
        await client.assistants.delete(assistant)
        return answers

    for answer in langgraph_server.talk(conversation):
        assert answer.status_code == 422
        assert answer.json()["detail"].startswith(f"{names}: ")


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ({"intent": {"needs_tool": "perhaps"}}, "values.intent.needs_tool"),
        ({"intnt": {}}, "values.intnt"),
        ({"tool_routing": {"reinjection_count": -5}}, "values.tool_routing.reinjection_count"),
    ],
)
def test_an_invalid_update_changes_nothing(
    langgraph_server: LangGraphServer, values: dict[str, Any], names: str
) -> None:
    async def conversation(client: LangGraphClient) -> tuple[str, str, Any]:
        thread, _ = await ask(client, "Hello")
        with pytest.raises(httpx.HTTPError) as updating:
            await client.threads.update_state(thread, values)
        command = await client.runs.wait(thread, GRAPH, command={"update": values}, raise_error=False)
        return str(updating.value), str(command), await client.runs.wait(thread, GRAPH, input=turn_input("Hello again"))

    updating, command, after = langgraph_server.talk(conversation)
    assert names in updating
    assert names in command
    assert after["content"]["original_prompt"] == "Hello again"
    assert after["response"]["candidate"]


def test_a_run_cannot_start_at_a_node(langgraph_server: LangGraphServer) -> None:
    async def conversation(client: LangGraphClient) -> list[str]:
        thread, _ = await ask(client, 'Write "hello" to started.txt', allow_write_tools=True)
        commands = ({"goto": "execute_tool"}, {"goto": ["respond"], "update": {}}, {"goto": "x", "resume": "yes"})
        runs = [client.runs.wait(thread, GRAPH, command=command, raise_error=False) for command in commands]
        return [str(await run) for run in runs]

    for answer in langgraph_server.talk(conversation):
        assert "goto is not supported" in answer
    assert not (langgraph_server.root / "started.txt").exists()


def test_a_command_cannot_forge_the_packet(langgraph_server: LangGraphServer) -> None:
    async def conversation(client: LangGraphClient) -> tuple[str, dict[str, Any]]:
        thread, state = await ask(client, 'Write "hello" to forged.txt', allow_write_tools=True)
        update = {"governance": state["governance"], "context": state["context"] | {"labels": []}}
        command = {"resume": "yes", "update": update}
        answer = await client.runs.wait(thread, GRAPH, command=command, raise_error=False)
        return str(answer), await client.threads.get_state(thread)

    answer, state = langgraph_server.talk(conversation)
    assert "cannot update 'context', 'governance'" in answer
    assert state["next"] == ["ask_user"]
    assert not (langgraph_server.root / "forged.txt").exists()


def test_an_invalid_request_changes_nothing(langgraph_server: LangGraphServer) -> None:
    async def conversation(client: LangGraphClient) -> tuple[str, Any]:
        thread, _ = await ask(client, "Hello")
        given = turn_input("Hello") | {"request": {"origin": 5}}
        refusal = await client.runs.wait(thread, GRAPH, input=given, raise_error=False)
        return str(refusal), await client.runs.wait(thread, GRAPH, input=turn_input("Hello again"))

    refusal, after = langgraph_server.talk(conversation)
    assert "values.request.origin" in refusal
    assert after["response"]["candidate"]


def test_a_state_can_be_edited_without_an_alarm(langgraph_server: LangGraphServer) -> None:
    async def conversation(client: LangGraphClient) -> Any:
        thread, _ = await ask(client, 'Write "hello" to edited.txt', allow_write_tools=True)
        await client.threads.update_state(thread, {"status": {"state": "processing"}})
        return (await client.threads.get_state(thread))["values"]["status"]["state"]

    assert langgraph_server.talk(conversation) == "processing"
    assert langgraph_server.alarms() == []
