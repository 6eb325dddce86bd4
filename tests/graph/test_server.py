"""`langgraph dev` serves the exported graph, and the LangGraph SDK talks to it over HTTP."""

from pathlib import Path
from typing import Any

from langgraph_sdk.client import LangGraphClient
from support.langgraph_server import LangGraphServer, ask, reply

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


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
