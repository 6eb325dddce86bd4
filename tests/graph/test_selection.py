"""Selection: questions to the user, descriptions, corrections, and the loop that ends."""

import pytest
from support.graphs import run_once, session
from support.notebook import Notebook
from support.origins import words
from support.scripted_deciders import call, clarify, describe, scripted

from packetgate.state.packet import CognitionPacket
from packetgate.state.transitions import ToolExecutionStatus

WHICH = clarify("Which note?")
READ_B = call("notebook.read_note", name="b")


@pytest.mark.parametrize(
    "reply",
    [
        *("b", " b \n", [{"type": "response", "args": "b"}]),
        {"decisions": [{"type": "respond", "message": "b"}]},
    ],
)
async def test_the_answer_becomes_the_users_own_words(notebook: Notebook, reply: object):
    deciders = scripted(WHICH, READ_B)
    async with session(deciders, notebook) as talk:
        asked = await talk.ask("Read a note")
        packet = await talk.reply(reply)
        steps = await talk.steps()
    assert asked.question["question"] == "Which note?"
    assert asked.question["kind"] == "question"
    (request,) = asked.question["action_requests"]
    assert request["args"] == request["arguments"] == {"answer": ""}
    assert asked.question["review_configs"] == [
        {"action_name": "A question for you", "allowed_decisions": ["respond", "edit", "reject"]}
    ]
    assert packet.content.clarifications == ("b",)
    assert words(packet.routing.calls[0].provenance) == {"name": "user"}
    assert notebook.calls == [("read_note", {"name": "b"})]
    assert steps[3:6] == ["select_tool", "ask_user", "select_tool"]
    assert packet.routing.reinjection_count == 1


async def test_an_unusable_answer_repeats_the_question(notebook: Notebook):
    async with session(scripted(WHICH, READ_B), notebook) as talk:
        await talk.ask("Read a note")
        again = await talk.ask_again({"decisions": [{"type": "approve"}]})
        assert "needs an answer in words" in again.question["problem"]
        assert again.question["question"] == "Which note?"
        await talk.reply("b")
    assert notebook.called == ["read_note"]


async def test_a_tool_off_the_palette_is_not_run_but_joins_it(notebook: Notebook):
    """The palette contains one tool; the other is a miss, then on the palette, then called."""
    read = call("notebook.read_note", name="a")
    deciders = scripted(read, read)
    packet = await run_once(deciders, "Send a letter", notebook, palette_size=1)
    first, second = deciders.selector.seen  # type: ignore[attr-defined]
    assert first.context.palette_names == {"notebook.send_letter"}
    assert [(one.tool_name, one.reason) for one in second.context.palette] == [("notebook.read_note", "widened")]
    assert second.routing.corrections[0].problem == "off_palette"
    assert "Offered: `notebook.send_letter`" in second.routing.corrections[0].message
    assert notebook.calls == [("read_note", {"name": "a"})]
    assert packet.routing.execution_status is ToolExecutionStatus.EXECUTED


async def test_a_model_cannot_set_dry_run(notebook: Notebook):
    """Only the gate sets `dry_run`, if a trusted server supports it."""
    trusted = notebook.connection(trusted=True)
    sneaky = call("notebook.save_note", name="a", text="x", dry_run=False)
    packet = await run_once(scripted(sneaky), "Save x as a", trusted)
    assert notebook.calls == []
    assert packet.routing.corrections[0].problem == "unknown_parameter"


READ_A = call("notebook.read_note", name="a")


def shown(packet: CognitionPacket) -> dict[str, tuple[str, str]]:
    return {entry.tool_name: (entry.detail, entry.reason) for entry in packet.context.palette}


async def run(notebook: Notebook, *selections, **context):
    deciders = scripted(*selections)
    packet = await run_once(deciders, "Do something with mail", notebook, **context)
    return packet, deciders.selector.seen


@pytest.mark.parametrize("wish", ["notebook.check_weather", "check_weather", "notebook_check_weather"])
async def test_the_next_selection_sees_the_full_description(notebook: Notebook, wish: str):
    packet, (first, second) = await run(notebook, describe(wish), READ_A, palette_token_budget=170)
    assert shown(first)["notebook.check_weather"] == ("brief", "default")
    assert shown(second)["notebook.check_weather"] == ("full", "described")
    assert packet.routing.described_tools == ("notebook.check_weather",)


async def test_a_described_tool_joins_the_palette(notebook: Notebook):
    weather = call("notebook.check_weather", city="Bern")
    _, (first, second) = await run(notebook, describe("notebook.check_weather"), weather, palette_size=1)
    assert "notebook.check_weather" not in first.context.palette_names
    assert second.context.palette_names == {"notebook.check_weather"}
    assert notebook.called == ["check_weather"]
