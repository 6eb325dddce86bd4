"""Only the allowed tools are offered, and only they run, whatever is selected."""

from support.graphs import session
from support.notebook import Notebook
from support.scripted_deciders import call, scripted

from state.routing import ToolExecutionStatus

READ, LIST = call("notebook.read_note", name="a"), call("notebook.list_notes")


async def test_the_palette_holds_the_allowed_tools_alone():
    async with session(scripted(READ), Notebook(), allowed_tools=("notebook.read_*", "notebook.list_*")) as talk:
        packet = await talk.say("Read a, then write it, list all and run it")
    assert packet.context.palette_names == {"notebook.read_note", "notebook.list_notes"}
    assert set(packet.context.available_mcp_tools) == packet.context.palette_names
    assert packet.routing.execution_status is ToolExecutionStatus.EXECUTED


async def test_a_tool_that_is_not_allowed_is_a_miss_and_does_not_run():
    notebook = Notebook()
    async with session(scripted(LIST, LIST), notebook, allowed_tools=("notebook.read_note",)) as talk:
        packet = await talk.say("List the notes")
    assert packet.routing.missed_tools == ("notebook.list_notes",) * 2
    assert (packet.routing.all_calls, notebook.calls) == ((), [])


async def test_what_was_approved_under_other_settings_does_not_run_any_more():
    notebook = Notebook()
    write = call("notebook.write_note", name="a", text="x")
    async with session(scripted(write), notebook, allow_write_tools=True) as talk:
        await talk.ask("Write x to a")
        talk.context = talk.context.model_copy(update={"allowed_tools": ("notebook.read_note",)})
        packet = await talk.reply("yes")
    assert packet.routing.execution_status is ToolExecutionStatus.FAILED
    assert "not among the tools that may be used here" in packet.response.candidate
    assert notebook.calls == []
