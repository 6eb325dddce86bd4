"""The reinjection loop: at most the configured passes, and no call twice."""

import pytest
from support.graphs import run_once
from support.notebook import Notebook
from support.scripted_deciders import call, calls, scripted, wanted

from packetgate.deciders.choosing import reflex_deciders
from packetgate.state.transitions import ToolExecutionStatus

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


async def test_an_identical_call_ends_the_loop(notebook: Notebook):
    packet = await run_once(scripted(FOUR[0], FOUR[0], FOUR[1]), "Read a", notebook)
    assert notebook.calls == [("read_note", {"name": "a"})]
    assert packet.routing.reinjection_count == 1
    assert packet.routing.pass_status is ToolExecutionStatus.SKIPPED
    assert "the same call was already made" in packet.response.candidate.lower()


async def test_the_same_call_twice_in_one_pass_runs_once(notebook: Notebook):
    twice = calls(wanted("notebook.read_note", name="a"), wanted("notebook.read_note", name="a"))
    packet = await run_once(scripted(twice), "Read a", notebook)
    assert notebook.calls == [("read_note", {"name": "a"})]
    assert len(packet.routing.all_calls) == 1
