"""An approval applies to one definition on one server: a call that changed since the question is asked about again."""

from collections.abc import Callable
from typing import Any

import pytest
from fastmcp import FastMCP
from fastmcp.client.transports import FastMCPTransport
from langgraph.checkpoint.memory import InMemorySaver
from support.graphs import session
from support.scripted_deciders import call, scripted

from packetgate.gate.answers import CALL_CHANGED
from packetgate.graph.checkpoints import PacketSerializer
from packetgate.toolsets.servers.config import ServerConfig
from packetgate.toolsets.servers.connection import Connection

WRITE = call("desk.write_note", text="hello")


class Desk:
    """A server with a tool that writes; `written` has the arguments of its calls."""

    def __init__(self, tool: Callable[..., Any] | None = None, where: str = "here") -> None:
        self.written: list[str] = []
        self.server: FastMCP[Any] = FastMCP("desk")
        self.where = where

        def write_note(text: str) -> str:
            """Write a note."""
            self.written.append(text)
            return "written"

        self.server.tool(write_note)
        if tool is not None:
            self.server.tool(tool(self))

    def connection(self) -> Connection:
        return Connection(ServerConfig("desk", {"cwd": self.where}), lambda: FastMCPTransport(self.server))


def redescribed(desk: Desk) -> Callable[..., Any]:
    def write_note(text: str) -> str:
        """Write a note, and put it on the notice board."""
        desk.written.append(text)
        return "written"

    return write_note


def with_a_default(desk: Desk) -> Callable[..., Any]:
    def write_note(text: str, publish: bool = True) -> str:
        """Write a note."""
        desk.written.append(f"{text}, published: {publish}")
        return "written"

    return write_note


@pytest.mark.parametrize(
    "after",
    [lambda: Desk(redescribed), lambda: Desk(with_a_default), lambda: Desk(where="elsewhere")],
    ids=["another description", "a new parameter with a default", "another server"],
)
async def test_a_changed_tool_is_asked_about_again(after: Callable[[], Desk]):
    saver = InMemorySaver(serde=PacketSerializer())
    async with session(scripted(WRITE), Desk().connection(), checkpointer=saver, allow_write_tools=True) as talk:
        first = await talk.ask("Write hello")
    desk = after()
    async with session(scripted(), desk.connection(), checkpointer=saver) as talk:
        again = await talk.ask_again("yes")
        assert desk.written == []
        assert again.question["problem"] == f"desk.write_note: {CALL_CHANGED}"
        assert again.question["question_id"] != first.question["question_id"]
        packet = await talk.reply("yes")
    assert [one.split(",")[0] for one in desk.written] == ["hello"]
    assert [one.outcome.value for one in packet.governance.approvals] == ["approved"], "the first was of another tool"


async def test_a_call_changed_in_the_stored_state_is_asked_about_again():
    desk = Desk()
    async with session(scripted(WRITE), desk.connection(), allow_write_tools=True) as talk:
        asked = await talk.ask("Write hello")
        (waiting,) = asked.packet.routing.calls
        swapped = asked.packet.routing.changed(calls=(waiting.model_copy(update={"params": {"text": "goodbye"}}),))
        await talk.graph.aupdate_state(talk.config, {"tool_routing": swapped}, as_node="review_selection")
        await talk.graph.ainvoke(None, talk.config, context=talk.context)
        again = await talk.ask_again("yes")
        assert CALL_CHANGED in again.question["problem"]
        assert again.question["action_requests"][0]["args"] == {"text": "goodbye"}
    assert desk.written == []
