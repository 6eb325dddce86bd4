"""Policy rules, and remembered approvals of each user, on the real graph."""

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from support.confirmed_reads import confirming_preferences
from support.graphs import Session, session
from support.notebook import Notebook
from support.scripted_deciders import call, none, scripted

from packetgate.connectors.turn import Asked, Finished, Reply, Say
from packetgate.gate.grants import GRANT_GIVEN, GRANT_USED, Grants
from packetgate.gate.journal import MemoryJournal
from packetgate.graph.building import build_graph
from packetgate.graph.checkpoints import PacketSerializer
from packetgate.graph.server_graph import ServerGraph
from packetgate.state.packet import CognitionPacket
from packetgate.state.request import TurnRequest
from packetgate.tools.catalogue.preferences import Preferences
from packetgate.toolsets.servers.hub import McpHub

WRITE = call("notebook.write_note", name="a", text="avocado")
AGAIN = call("notebook.write_note", name="a", text="artichoke")
OTHER = call("notebook.write_note", name="b", text="avocado")
READ = call("notebook.read_note", name="a")
ASK = "Write avocado, artichoke to a and b"


def policy(*rules: dict[str, Any], remember: str = "never", **more: Any) -> Preferences:
    return Preferences.model_validate({"policy": {"rules": [*rules], "remember": remember, **more}})


def of(effect: str, tool: str = "notebook.write_note", **more: Any) -> dict[str, Any]:
    return {"effect": effect, "tool": tool, **more}


def statuses(packet: CognitionPacket) -> list[str]:
    return [one.status.value for one in packet.routing.all_calls]


async def test_an_allow_rule_replaces_the_question_and_is_recorded(notebook: Notebook):
    rules = policy(of("allow", arguments={"name": "a", "text": "**"}))
    async with session(scripted(WRITE, OTHER), notebook, preferences=rules, allow_write_tools=True) as talk:
        asked = await talk.ask(ASK)  # asks about the other tool, which no rule names
    assert notebook.notes["a"] == "avocado"
    assert notebook.notes["b"] == "bread"
    (approval,) = asked.packet.governance.approvals
    assert approval.by == 'the policy: allow notebook.write_note with name "a", any text'
    assert [one["args"]["name"] for one in asked.question["action_requests"]] == ["b"]


async def test_a_denied_tool_is_not_offered(notebook: Notebook):
    rules = policy(of("deny"), of("allow"))
    async with session(scripted(WRITE, none()), notebook, preferences=rules, allow_write_tools=True) as talk:
        packet = await talk.say(ASK)
    assert notebook.calls == []
    assert "notebook.write_note" not in packet.context.available_mcp_tools
    assert "notebook.read_note" in packet.context.available_mcp_tools


async def remembering(talk: Session, word: Any) -> CognitionPacket:
    await talk.ask(ASK)
    return await talk.reply(word)


@pytest.mark.parametrize("word", ["always", "session", {"type": "approve", "remember": "always"}])
async def test_a_remembered_approval_replaces_the_next_question(notebook: Notebook, word: Any):
    journal = MemoryJournal()
    rules = policy(remember="always")
    async with session(scripted(WRITE), notebook, preferences=rules, journal=journal, allow_write_tools=True) as talk:
        await remembering(talk, word)
    async with session(scripted(WRITE), notebook, preferences=rules, journal=journal, allow_write_tools=True) as talk:
        packet = await talk.say("Write avocado to a")
    assert statuses(packet) == ["executed"]
    assert notebook.called == ["write_note", "write_note"]
    assert [row.entry.event for row in await journal.event_entries(GRANT_GIVEN, GRANT_USED)] == [
        GRANT_GIVEN,
        GRANT_USED,
    ]
    assert packet.governance.approvals[-1].by.startswith("grant ")
    (status,) = await Grants(journal).all()
    assert status.use_count == 1


async def test_a_session_grant_ends_with_its_session_and_a_revoked_grant_at_once(notebook: Notebook):
    journal, rules = MemoryJournal(), policy(remember="always")
    async with session(scripted(WRITE), notebook, preferences=rules, journal=journal, allow_write_tools=True) as talk:
        await remembering(talk, "session")
    async with session(scripted(WRITE), notebook, preferences=rules, journal=journal, allow_write_tools=True) as talk:
        talk.name = "another"
        await talk.ask(ASK)
    (status,) = await Grants(journal).all()
    assert await Grants(journal).revoke(status.grant.grant_id)
    assert not await Grants(journal).revoke(status.grant.grant_id)
    async with session(scripted(AGAIN), notebook, preferences=rules, journal=journal, allow_write_tools=True) as talk:
        await talk.ask(ASK)


RULES = Preferences.model_validate({"policy": {"remember": "always"}})
ANN, BEN, NAMELESS = (TurnRequest(origin="discord", person=person) for person in ("ann", "ben", ""))


async def run(notebook: Notebook, journal: MemoryJournal, by: TurnRequest, word: str = "") -> dict[str, Any] | str:
    """Request a note; return the question about it, which `word` answers, or the status of its call."""
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
