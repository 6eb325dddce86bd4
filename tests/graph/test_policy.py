"""Approvals hold for the user who gave them, and for one definition on one server."""

from typing import Any

import pytest
from fastmcp.client.transports import FastMCPTransport
from langgraph.checkpoint.memory import InMemorySaver
from support.confirmed_reads import confirming_preferences
from support.graphs import session
from support.notebook import Notebook
from support.scripted_deciders import call, none, scripted

from packetgate.connectors.turn import Asked, Finished, Reply, Say
from packetgate.gate.answers import CALL_CHANGED
from packetgate.gate.grants import Grants
from packetgate.gate.journal import MemoryJournal
from packetgate.graph.building import build_graph
from packetgate.graph.checkpoints import PacketSerializer
from packetgate.graph.server_graph import ServerGraph
from packetgate.state.packet import CognitionPacket
from packetgate.state.request import TurnRequest
from packetgate.tools.catalogue.preferences import Preferences
from packetgate.toolsets.servers.config import ServerConfig
from packetgate.toolsets.servers.connection import Connection
from packetgate.toolsets.servers.hub import McpHub

RULES = Preferences.model_validate({"policy": {"remember": "always"}})
ANN, BEN, NAMELESS = (TurnRequest(origin="discord", person=person) for person in ("ann", "ben", ""))


async def run(notebook: Notebook, journal: MemoryJournal, by: TurnRequest, word: str = "") -> dict[str, Any] | str:
    """Request a note; return the question, which `word` answers, or the status of the call."""
    write = scripted(call("notebook.write_note", name="a", text="avocado"))
    async with session(write, notebook, preferences=RULES, journal=journal, allow_write_tools=True) as talk:
        last = (await talk.events(Say("Write avocado to a", by)))[-1]
        if isinstance(last, Finished):
            return last.packet.routing.all_calls[-1].status.value
        assert isinstance(last, Asked)
        if word:
            await talk.events(Reply(word))
        return dict(last.question["action_requests"][0])


@pytest.mark.parametrize("word", ["always", "session"])
async def test_an_approval_applies_to_its_user(notebook: Notebook, word: str):
    journal = MemoryJournal()
    asked = await run(notebook, journal, ANN, word)
    assert isinstance(asked, dict)
    assert ", asked by ann in discord: " in asked["remember"][word]
    for other in (BEN, NAMELESS):
        assert isinstance(await run(notebook, journal, other), dict)
    assert await run(notebook, journal, ANN) == "executed"
    (status,) = await Grants(journal).all()
    assert status.use_count == 1
    assert status.grant.line.endswith("asked by ann in discord")


async def test_a_refusal_applies_to_its_user(notebook: Notebook):
    journal = MemoryJournal()
    await run(notebook, journal, ANN, "never")
    assert await run(notebook, journal, ANN) == "skipped"
    assert isinstance(await run(notebook, journal, BEN), dict)


async def test_the_servers_authenticated_user_overrides_the_clients_claim(notebook: Notebook):
    async with McpHub([notebook.connection()], preferences=confirming_preferences()) as hub:
        saver = InMemorySaver(serde=PacketSerializer())
        graph = ServerGraph.from_graph(build_graph(scripted(none()), hub).compile(checkpointer=saver))
        for number, (known, person) in enumerate([("ann", "ann"), ("", "ben")]):
            config: Any = {"configurable": {"thread_id": f"t{number}", "langgraph_auth_user_id": known}}
            given: Any = {"messages": [{"role": "user", "content": "Hello"}], "request": {"person": "ben"}}
            packet = CognitionPacket.model_validate(await graph.ainvoke(given, config))
            assert (packet.header.origin, packet.header.person) == ("server", person)


WRITE = call("notebook.write_note", name="a", text="avocado")


async def test_the_same_tool_of_another_server_is_asked_about_again(notebook: Notebook):
    saver = InMemorySaver(serde=PacketSerializer())
    async with session(scripted(WRITE), notebook, checkpointer=saver, allow_write_tools=True) as talk:
        first = await talk.ask("Write avocado to a")
    other = Notebook()
    elsewhere = Connection(ServerConfig("notebook", {"cwd": "elsewhere"}), lambda: FastMCPTransport(other.server))
    async with session(scripted(), elsewhere, checkpointer=saver) as talk:
        again = await talk.ask_again("yes")
        assert other.calls == []
        assert again.question["problem"] == f"notebook.write_note: {CALL_CHANGED}"
        assert again.question["question_id"] != first.question["question_id"]
        packet = await talk.reply("yes")
    assert other.called == ["write_note"]
    assert [one.outcome.value for one in packet.governance.approvals] == ["approved"], "the first is for another tool"
