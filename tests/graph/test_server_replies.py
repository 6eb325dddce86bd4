"""Every form of reply, sent with the LangGraph SDK to a running server, and its effect on disk."""

from typing import Any

import pytest
from langgraph_sdk.client import LangGraphClient
from support.langgraph_server import LangGraphServer, ask, reply

PATH = "written.txt"
EDITED = {"path": PATH, "content": "an owl, edited"}


def question(packet: Any) -> Any:
    """Return the open question of a run."""
    (interrupt,) = packet["__interrupt__"]
    return interrupt["value"]


@pytest.fixture(autouse=True)
def _nothing_written(langgraph_server: LangGraphServer) -> None:
    for file in langgraph_server.root.iterdir():
        file.unlink()


async def asked(client: LangGraphClient, **context: Any) -> str:
    """Return a thread with the open question."""
    thread, packet = await ask(client, f'Write "hello owl" to {PATH}', allow_write_tools=True, **context)
    (request,) = question(packet)["action_requests"]
    assert (request["name"], request["args"]) == ("ai.write", {"path": PATH, "content": "hello owl"})
    return thread


def on_disk(server: LangGraphServer) -> dict[str, str]:
    return {file.name: file.read_text() for file in server.root.iterdir()}


OTHER = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    "stray",
    [
        {"question_id": OTHER, "decisions": [{"type": "approve"}]},
        {"question_id": "", "decisions": [{"type": "approve"}]},
        {"decisions": [{"type": "approve", "question_id": OTHER}]},
        {"type": "approve", "question_id": OTHER},
        [{"type": "accept", "args": {"action": "ai.write", "args": EDITED}}],
        {OTHER: "yes"},
    ],
    ids=str,
)
def test_a_reply_that_names_another_question_or_call_approves_nothing(
    langgraph_server: LangGraphServer, stray: Any
) -> None:
    """The last id is LangGraph's own id of an interrupt."""

    async def conversation(client: LangGraphClient) -> Any:
        thread = await asked(client)
        again = question(await reply(client, thread, stray))
        before = on_disk(langgraph_server)
        named = {"question_id": again["question_id"], "decisions": [{"type": "approve"}]}
        return before, await reply(client, thread, named)

    before, packet = langgraph_server.talk(conversation)
    assert before == {}
    assert packet["tool_routing"]["calls"][0]["status"] == "executed"
    assert on_disk(langgraph_server) == {PATH: "hello owl"}
