"""Selection: questions to the user, descriptions, corrections, and the loop that ends."""

from typing import Any

import pytest
from support.graphs import run_once, session
from support.notebook import Notebook
from support.origins import words
from support.scripted_deciders import ScriptedResponder, call, clarify, describe, scripted

from packetgate.deciders.choosing import reflex_deciders
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


async def test_a_turn_asks_at_most_two_questions(notebook: Notebook):
    async with session(scripted(WHICH, clarify("Sure?"), clarify("Really?")), notebook) as talk:
        await talk.ask("Read a note")
        second = await talk.ask_again("b")
        assert second.question["question"] == "Sure?"
        packet = await talk.reply("yes, b")
    assert packet.content.clarifications == ("b", "yes, b")
    assert packet.routing.execution_status is ToolExecutionStatus.SKIPPED
    assert "The selection asked more than 2 questions" in packet.response.candidate
    assert notebook.calls == []


@pytest.mark.parametrize(
    ("name", "params", "problem", "says"),
    [
        ("notebook.read_note", {"name": ["a"]}, "invalid_value", 'this value of `name`: ["a"] is not of type "string"'),
        ("notebook.read_note", {"nam": "a", "name": "a"}, "unknown_parameter", "Did you mean `name`?"),
        ("notebook.read_note", {}, "missing_parameter", "needs `name`: it is missing"),
    ],
)
async def test_an_invalid_call_does_not_run_and_is_corrected(
    notebook: Notebook, name: str, params: dict[str, Any], problem: str, says: str
):
    packet = await run_once(scripted(call(name, **params)), "Read note a", notebook)
    assert notebook.calls == []
    assert packet.routing.calls == ()
    assert packet.routing.pass_status is ToolExecutionStatus.SKIPPED
    assert [one.problem for one in packet.routing.corrections] == [problem]
    (correction,) = packet.routing.corrections
    assert correction.tool_name == name
    assert says in correction.message
    assert "It takes: name (string, required)" in correction.message
    assert correction.message in packet.response.candidate


async def test_an_unknown_tool_widens_the_palette_once_then_ends_with_suggestions(notebook: Notebook):
    missing = call("notebook.read_notes_aloud", name="a")
    deciders = scripted(missing, missing)
    packet = await run_once(deciders, "Read a", notebook)
    first, second = deciders.selector.seen  # type: ignore[attr-defined]
    assert first.routing.missed_tools == ()
    assert second.routing.missed_tools == ("notebook.read_notes_aloud",)
    assert "There is no tool `notebook.read_notes_aloud`. Nearest:" in second.routing.corrections[0].message
    assert packet.routing.outcome == "none"
    assert packet.routing.suggestions[0] == "notebook.read_note"
    assert "Nearest tools: notebook.read_note" in packet.response.candidate
    assert packet.routing.execution_status is ToolExecutionStatus.SKIPPED
    assert notebook.calls == []
    assert packet.routing.reinjection_count == 0


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


async def test_requests_for_descriptions_are_limited(notebook: Notebook):
    once = describe("notebook.check_weather")
    packet, seen = await run(notebook, once, once, once, READ_A)
    assert len(seen) == 3
    assert packet.routing.describe_rounds == 2
    assert "The selection asked for tool descriptions more than 2 times" in packet.response.candidate
    assert notebook.calls == []


async def test_a_described_tool_joins_the_palette(notebook: Notebook):
    weather = call("notebook.check_weather", city="Bern")
    _, (first, second) = await run(notebook, describe("notebook.check_weather"), weather, palette_size=1)
    assert "notebook.check_weather" not in first.context.palette_names
    assert second.context.palette_names == {"notebook.check_weather"}
    assert notebook.called == ["check_weather"]


FOUR = [call("notebook.read_note", name=name) for name in "abcd"]


@pytest.fixture
def files() -> Notebook:
    """A server with notes that are named like files."""
    return Notebook(**{f"{name}.txt": f"text of {name}" for name in "abcd"})


async def test_a_fourth_pass_is_skipped_and_the_answer_says_so(files: Notebook):
    packet = await run_once(
        reflex_deciders(),
        "Read note name=a.txt then read note name=b.txt then read note name=c.txt then read note name=d.txt",
        files,
    )
    assert [params["name"] for _, params in files.calls] == ["a.txt", "b.txt", "c.txt"]
    assert packet.routing.reinjection_count == 3
    assert packet.routing.calls == ()
    assert packet.routing.execution_status is packet.routing.pass_status is ToolExecutionStatus.SKIPPED
    for name in "abc":
        assert f"text of {name}" in packet.response.candidate
    assert "The rest was skipped: the limit is 3 rounds of tool calls per turn." in packet.response.candidate


async def test_three_steps_run_without_a_note_about_skipping(files: Notebook):
    packet = await run_once(
        reflex_deciders(), "Read note name=a.txt then read note name=b.txt then read note name=c.txt", files
    )
    assert packet.routing.reinjection_count == 3
    assert "skipped" not in packet.response.candidate
    assert packet.routing.note == ""


async def test_markup_is_not_in_the_sessions_messages(notebook: Notebook):
    leak = "Fine.<tool_call>{'x': 1}</tool_call>"
    async with session(scripted(READ_A, responder=ScriptedResponder(leak)), notebook) as talk:
        await talk.say("Read a")
        packet = await talk.say("Hello")
    assert [message.text for message in packet.messages] == ["Read a", "Fine.", "Hello", "Fine."]
    assert packet.metrics.violations == 1
