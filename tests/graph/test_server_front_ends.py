"""agent-chat-ui and Agent Inbox show questions, and their replies are understood.

Their checks and replies are reimplemented here.
"""

from dataclasses import dataclass
from typing import Any

import pytest
from langgraph_sdk.client import LangGraphClient
from support.langgraph_server import GRAPH, LangGraphServer, ask, said

WRITE, UNCLEAR = 'Write "hello owl" to shown.txt', "Write shown.txt"


def is_shown_by_chat_ui(interrupt: Any, messages: list[Any]) -> bool:
    """Return whether agent-chat-ui shows a card, by the last message and the form of the payload."""
    value = interrupt.get("value")
    requests, configs = value.get("action_requests"), value.get("review_configs")
    return (
        messages[-1]["type"] in {"ai", "tool"}
        and isinstance(requests, list)
        and isinstance(configs, list)
        and len(requests) > 0
        and len(configs) > 0
        and all(isinstance(one.get("name"), str) and isinstance(one.get("args"), dict) for one in requests)
        and all(isinstance(one.get("action_name"), str) for one in configs)
        and all(isinstance(one.get("allowed_decisions"), list) for one in configs)
    )


@dataclass(frozen=True)
class InboxItem:
    """An interrupt in the form of Agent Inbox: only the first request, with `allow_` switches."""

    action: str
    args: dict[str, Any]
    description: str
    allows: frozenset[str]

    @classmethod
    def of(cls, value: Any) -> "InboxItem":
        request, config = value["action_requests"][0], value["review_configs"][0]
        switches = {"approve": "accept", "edit": "edit", "reject": "respond"}
        allows = frozenset(name for decision, name in switches.items() if decision in config["allowed_decisions"])
        return cls(request["name"], request.get("args", request.get("arguments")), request["description"], allows)


async def interrupted(client: LangGraphClient, text: str) -> tuple[str, list[Any], list[Any]]:
    """Return a thread in its second turn, with interrupts and messages as both front ends fetch them."""
    thread, _ = await ask(client, "Hello", allow_write_tools=True)
    await client.runs.wait(thread, GRAPH, input=said(text), context={"allow_write_tools": True})
    found = await client.threads.get(thread)
    assert found["status"] == "interrupted"
    interrupts = [interrupt for interrupts in found["interrupts"].values() for interrupt in interrupts]
    return thread, interrupts, found["values"]["messages"]


@pytest.mark.parametrize(
    ("text", "name", "allows"),
    [(WRITE, "ai.write", {"accept", "edit", "respond"}), (UNCLEAR, "A question for you", {"edit", "respond"})],
)
def test_a_question_is_shown(langgraph_server: LangGraphServer, text: str, name: str, allows: set[str]) -> None:
    _, (interrupt,), messages = langgraph_server.talk(lambda client: interrupted(client, text))
    assert is_shown_by_chat_ui(interrupt, messages)
    value = interrupt["value"]
    assert [one["name"] for one in value["action_requests"]] == [one["action_name"] for one in value["review_configs"]]
    item = InboxItem.of(value)
    assert (item.action, item.allows) == (name, allows)
    assert item.args == value["action_requests"][0]["arguments"]
    assert item.description
