"""One question covers all calls that need the user."""

import asyncio

import pytest
from support.graphs import run_once, session
from support.notebook import Notebook
from support.scripted_deciders import ScriptedReviewer, approving, call, calls, scripted, wanted

from packetgate.state.sections import PacketState
from packetgate.state.transitions import ToolExecutionStatus

WRITE = call("notebook.write_note", name="a", text="avocado")
ASK = "Write avocado to a"


async def test_the_payload_has_the_form_of_front_ends(notebook: Notebook):
    async with session(scripted(WRITE), notebook, allow_write_tools=True) as talk:
        asked = await talk.ask(ASK)
    (request,) = asked.question["action_requests"]
    assert asked.question["kind"] == "approval"
    assert request["name"] == "notebook.write_note"
    assert request["args"] == request["arguments"] == {"name": "a", "text": "avocado"}
    assert "notebook.write_note (write), review score 0.90" in request["description"]
    assert asked.question["review_configs"] == [
        {"action_name": "notebook.write_note", "allowed_decisions": ["approve", "edit", "reject", "respond"]}
    ]
    assert asked.packet.status.state is PacketState.AWAITING_USER
    assert asked.packet.status.next_steps == ("ask_user",)


async def test_only_calls_that_need_approval_are_asked_about_and_all_run_concurrently(notebook: Notebook):
    """Two of three calls need approval: one interrupt lists both, then all three run concurrently."""
    three = calls(
        wanted("notebook.write_note", name="x", text="one"),
        wanted("notebook.read_note", name="b"),
        wanted("notebook.write_note", name="y", text="two"),
    )
    barrier = asyncio.Barrier(3)

    class Meeting(Notebook):
        async def read_note(self, name: str) -> str:
            await barrier.wait()
            return await super().read_note(name)

        async def write_note(self, name: str, text: str) -> str:  # type: ignore[override]
            await barrier.wait()
            return await super().write_note(name, text)

    notebook = Meeting()
    async with session(scripted(three), notebook, allow_write_tools=True) as talk:
        asked = await talk.ask("Write one to x and two to y and read b")
        listed = [request["args"]["name"] for request in asked.question["action_requests"]]
        assert (listed, notebook.calls) == (["x", "y"], [])
        packet = await talk.reply("yes")
    assert (notebook.notes["x"], notebook.notes["y"]) == ("one", "two")
    assert [one.status.value for one in packet.routing.all_calls] == ["executed"] * 3
    assert packet.routing.reinjection_count == 1


async def test_low_confidence_read_can_be_approved(notebook: Notebook):
    unsure = ScriptedReviewer(approving(0.69))
    async with session(scripted(call("notebook.read_note", name="a"), reviewer=unsure), notebook) as talk:
        asked = await talk.ask("Read a")
        assert "0.69 is below 0.70" in asked.question["action_requests"][0]["description"]
        packet = await talk.reply("ok")
    assert packet.routing.execution_status is ToolExecutionStatus.EXECUTED


@pytest.mark.parametrize(
    ("confidence", "tool", "reason"),
    [(0.69, "notebook.read_note", "below"), (0.95, "notebook.write_note", "approval")],
)
async def test_without_a_checkpointer_nobody_is_asked(notebook: Notebook, confidence: float, tool: str, reason: str):
    params = {"name": "a"} | ({"text": "x"} if tool.endswith("write_note") else {})
    deciders = scripted(call(tool, **params), reviewer=ScriptedReviewer(approving(confidence)))
    packet = await run_once(deciders, "Do it to a: x", notebook, allow_write_tools=True)
    assert (packet.routing.execution_status, notebook.calls) == (ToolExecutionStatus.SKIPPED, [])
    assert reason in packet.response.candidate
