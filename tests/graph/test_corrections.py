"""An invalid call does not run, and the packet contains a correction for the model."""

from typing import Any

import pytest
from support.graphs import run_once
from support.notebook import Notebook
from support.scripted_deciders import call, scripted

from packetgate.state.transitions import ToolExecutionStatus


@pytest.mark.parametrize(
    ("name", "params", "problem", "says"),
    [
        ("notebook.read_note", {"name": ["a"]}, "invalid_value", 'as given: ["a"] is not of type "string"'),
        ("notebook.read_note", {"name": "a", "colour": "red"}, "unknown_parameter", "has no parameter `colour`"),
        ("notebook.read_note", {"nam": "a", "name": "a"}, "unknown_parameter", "Did you mean `name`?"),
        ("notebook.read_note", {}, "missing_parameter", "needs `name`: it is missing"),
        ("notebook.write_note", {"name": "a", "text": "x", "mode": "burn"}, "invalid_value", '"burn" is not one of'),
        ("notebook.write_note", {"name": "a"}, "missing_parameter", "needs `text`"),
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
    """If a trusted server supports it, only the gate sets it."""
    trusted = notebook.connection(trusted=True)
    sneaky = call("notebook.save_note", name="a", text="x", dry_run=False)
    packet = await run_once(scripted(sneaky), "Save x as a", trusted)
    assert notebook.calls == []
    assert packet.routing.corrections[0].problem == "unknown_parameter"
