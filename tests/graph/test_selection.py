"""Selection: questions, descriptions, corrections, the end of the loop, and the allow-list."""

import json

import pytest
from support.graphs import run_once, session
from support.notebook import Notebook
from support.origins import words
from support.prompts import call as prompted
from support.prompts import selection
from support.scripted_deciders import call, clarify, describe, scripted
from support.scripted_openai import ScriptedOpenAI

from packetgate.deciders.protocols import Deciders
from packetgate.state.packet import CognitionPacket
from packetgate.state.transitions import ToolExecutionStatus

WHICH = clarify("Which note?")
READ_B = call("notebook.read_note", name="b")


@pytest.mark.parametrize("reply", [" b \n", {"decisions": [{"type": "respond", "message": "b"}]}])
async def test_the_answer_becomes_the_users_own_words(notebook: Notebook, reply: object):
    deciders = scripted(WHICH, READ_B)
    async with session(deciders, notebook) as talk:
        asked = await talk.ask("Read a note")
        again = await talk.ask_again({"decisions": [{"type": "approve"}]})
        assert "needs an answer in words" in again.question["problem"]
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
    assert steps[3:7] == ["select_tool", "ask_user", "ask_user", "select_tool"]
    assert packet.routing.reinjection_count == 1


async def test_a_tool_off_the_palette_is_not_run_but_joins_it(notebook: Notebook):
    """The palette contains one tool. The first call to the other tool adds it to the palette; the second call runs."""
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


async def test_a_reply_may_narrow_the_tools_of_the_run_that_asked():
    """The other settings of that run still apply, but tools that are now forbidden do not run."""
    notebook = Notebook()
    write = call("notebook.write_note", name="a", text="x")
    async with session(scripted(write), notebook, allow_write_tools=True) as talk:
        await talk.ask("Write x to a")
        talk.context = talk.context.model_copy(update={"allowed_tools": ("notebook.read_note",)})
        packet = await talk.reply("yes")
    assert packet.routing.execution_status is ToolExecutionStatus.FAILED
    assert "There is no tool `notebook.write_note`" in packet.response.candidate
    assert notebook.calls == []


FORBIDDEN = ("write_note", "save_note", "list_notes", "check_weather", "fetch_slowly", "send_letter", "run_command")
ONLY_READ = {"allowed_tools": ("notebook.read_note",)}


def named_in(text: str) -> set[str]:
    """Return the forbidden tools that a text names."""
    return {name for name in FORBIDDEN if name in text}


@pytest.mark.parametrize(
    "chosen",
    [
        selection("describe", tools=["*"]),
        selection("describe", tools=["notebook"]),
        selection("describe", tools=["notebook.write_nothing"]),
        prompted("notebook.write_nothing", name="a"),
        prompted("notebook.read_note", nam="a", text="x"),
    ],
)
async def test_no_prompt_names_a_forbidden_tool(
    by_model: Deciders, notebook: Notebook, scripted_openai: ScriptedOpenAI, chosen: str
):
    scripted_openai.script(chosen, prompted("notebook.read_note", name="a"), "Apples.")
    packet = await run_once(by_model, "Say what stands in note a", notebook, **ONLY_READ)
    assert notebook.called == ["read_note"]
    assert packet.response.candidate == "Apples."
    assert named_in(json.dumps(scripted_openai.requests)) == set()
    assert named_in(packet.model_dump_json()) == set()
