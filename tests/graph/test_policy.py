"""Policy rules and remembered approvals on the real graph."""

from typing import Any

import pytest
from support.graphs import Session, session
from support.notebook import Notebook
from support.scripted_deciders import call, calls, none, scripted

from packetgate.state.packet import CognitionPacket
from packetgate.tools.catalogue.preferences import Preferences
from packetgate.tools.execution.grants import GIVEN, USED, Grants
from packetgate.tools.execution.journal import MemoryJournal

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
        asked = await talk.ask(ASK)  # about the other, which no rule names
    assert notebook.notes["a"] == "avocado"
    assert notebook.notes["b"] == "bread"
    (approval,) = asked.packet.governance.approvals
    assert approval.by == 'the policy: allow notebook.write_note with name "a", any text'
    assert [one["args"]["name"] for one in asked.question["action_requests"]] == ["b"]


async def test_an_allow_rule_does_not_enable_writes(notebook: Notebook):
    async with session(scripted(WRITE), notebook, preferences=policy(of("allow"))) as talk:
        packet = await talk.say(ASK)
    assert statuses(packet) == ["skipped"]
    assert notebook.calls == []


async def test_a_denied_tool_is_not_offered(notebook: Notebook):
    rules = policy(of("deny"), of("allow"))
    async with session(scripted(WRITE, none()), notebook, preferences=rules, allow_write_tools=True) as talk:
        packet = await talk.say(ASK)
    assert notebook.calls == []
    assert "notebook.write_note" not in packet.context.available_mcp_tools
    assert "notebook.read_note" in packet.context.available_mcp_tools


async def test_denied_arguments_do_not_run(notebook: Notebook):
    rules = policy(of("deny", arguments={"name": "A"}), of("allow"))
    both = calls(*WRITE.calls, *OTHER.calls)
    async with session(scripted(both), notebook, preferences=rules, allow_write_tools=True) as talk:
        packet = await talk.say(ASK)
    assert statuses(packet) == ["skipped", "executed"]
    assert "denied by the policy: deny notebook.write_note" in packet.routing.all_calls[0].review_reasoning
    assert notebook.notes["a"] == "apples"


async def test_an_ask_rule_applies_to_reads(notebook: Notebook):
    rules = policy(of("ask", "notebook.read_note"), of("allow", "*"))
    async with session(scripted(READ), notebook, preferences=rules) as talk:
        await talk.ask("Read a")
        assert notebook.calls == []
        packet = await talk.reply("yes")
    assert statuses(packet) == ["executed"]


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
        packet = await talk.say(ASK)
    assert statuses(packet) == ["executed"]
    assert notebook.called == ["write_note", "write_note"]
    assert [row.entry.event for row in await journal.of_events(GIVEN, USED)] == [GIVEN, USED]
    assert packet.governance.approvals[-1].by.startswith("grant ")
    (standing,) = await Grants(journal).all()
    assert standing.used == 1


async def test_a_session_grant_ends_with_its_session_and_a_revoked_grant_at_once(notebook: Notebook):
    journal, rules = MemoryJournal(), policy(remember="always")
    async with session(scripted(WRITE), notebook, preferences=rules, journal=journal, allow_write_tools=True) as talk:
        await remembering(talk, "session")
    async with session(scripted(WRITE), notebook, preferences=rules, journal=journal, allow_write_tools=True) as talk:
        talk.name = "another"
        await talk.ask(ASK)
    (standing,) = await Grants(journal).all()
    assert await Grants(journal).revoke(standing.grant.grant_id)
    assert not await Grants(journal).revoke(standing.grant.grant_id)
    async with session(scripted(AGAIN), notebook, preferences=rules, journal=journal, allow_write_tools=True) as talk:
        await talk.ask(ASK)
