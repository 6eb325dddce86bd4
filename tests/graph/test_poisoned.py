"""Leaked tool markup in an answer reaches neither the user nor the next prompt."""

import pytest
from support.graphs import run_once, session
from support.notebook import Notebook
from support.scripted_deciders import ScriptedResponder, call, scripted

READ_A = call("notebook.read_note", name="a")


@pytest.mark.parametrize(
    ("leak", "left", "violations"),
    [
        ("It says apples.<tool_call>{}</tool_call>", "It says apples.", 1),
        ("<think>Secret plan</think>Apples.", "Apples.", 1),
        ("Apples.\n```tool_code\nread()\n```", "Apples.\n```tool_code\nread()\n```", 0),
        ("<think>a</think>Apples<think>b</think>.<|python_tag|>x", "Apples.", 3),
        ("It says apples.", "It says apples.", 0),
    ],
)
async def test_markup_is_removed_and_counted(notebook: Notebook, leak: str, left: str, violations: int):
    packet = await run_once(scripted(READ_A, responder=ScriptedResponder(leak)), "Read a", notebook)
    assert packet.response.candidate == packet.messages[-1].text == left
    assert packet.metrics.violations == violations


async def test_markup_is_not_in_the_sessions_messages(notebook: Notebook):
    leak = "Fine.<tool_call>{'x': 1}</tool_call>"
    async with session(scripted(READ_A, responder=ScriptedResponder(leak)), notebook) as talk:
        await talk.say("Read a")
        packet = await talk.say("Hello")
    assert [message.text for message in packet.messages] == ["Read a", "Fine.", "Hello", "Fine."]
    assert packet.metrics.violations == 1
