"""Assistants on one server: each uses its own context."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from langgraph_sdk.client import LangGraphClient
from support.langgraph_server import GRAPH, LangGraphServer, ask

READ, WRITE = "Read notes.txt", 'Write "hello" to assistant.txt'


@dataclass(frozen=True)
class Case:
    """An assistant, a request, and the status of its first call after the run."""

    context: dict[str, Any]
    request: str
    status: str | None
    run: dict[str, Any] = field(default_factory=dict)
    """The run's own context."""


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
