"""Only tools of the allow-list are offered, named and executed, whatever is selected."""

import json

import pytest
from support.graphs import run_once, session
from support.notebook import Notebook
from support.prompts import call as prompted
from support.prompts import review, selection
from support.scripted_deciders import call, scripted
from support.scripted_openai import ScriptedOpenAI

from packetgate.deciders.protocols import Deciders
from packetgate.state.transitions import ToolExecutionStatus


async def test_a_reply_may_narrow_the_tools_of_the_run_that_asked():
    """The other settings of that run still apply, but tools that are forbidden now do not run."""
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
    scripted_openai.script(chosen, prompted("notebook.read_note", name="a"), review(0.9), "Apples.")
    packet = await run_once(by_model, "Say what stands in note a", notebook, **ONLY_READ)
    assert notebook.called == ["read_note"]
    assert packet.response.candidate == "Apples."
    assert named_in(json.dumps(scripted_openai.requests)) == set()
    assert named_in(packet.model_dump_json()) == set()
