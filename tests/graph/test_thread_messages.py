"""While a question is open, an AI message with its tool calls comes last. Tool messages close the question."""

from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.types import Command
from support.graphs import Session, session
from support.notebook import Notebook
from support.scripted_deciders import call, calls, none, scripted, wanted

from packetgate.state.packet import CognitionPacket

WRITE = call("notebook.write_note", name="a", text="avocado")
BOTH = calls(wanted("notebook.write_note", name="a", text="x"), wanted("notebook.write_note", name="b", text="x"))
READ = call("notebook.read_note", name="a")
ASK = "Write avocado to a"
EDIT = {"type": "edit", "edited_action": {"name": "notebook.write_note", "args": {"name": "b", "text": "butter"}}}
RAN = "The user approved the call, and it ran."


def are_valid_messages(messages: Sequence[AnyMessage]) -> bool:
    """Return whether a tool message follows each tool call except at the end, as providers require."""
    open_ids: list[str] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in open_ids:
                return False
            open_ids.remove(message.tool_call_id)
        elif open_ids:
            return False
        if isinstance(message, AIMessage):
            open_ids = [str(one["id"]) for one in message.tool_calls]
    ids = [one["id"] for message in messages if isinstance(message, AIMessage) for one in message.tool_calls]
    return len({*ids}) == len(ids) and all(len(str(one)) <= 40 for one in ids)


def kinds(messages: Sequence[AnyMessage]) -> list[str]:
    return ["call" if getattr(one, "tool_calls", None) else one.type for one in messages]


def closings(packet: CognitionPacket) -> list[str]:
    return [one.text for one in packet.messages if isinstance(one, ToolMessage)]


async def second_turn(talk: Session) -> CognitionPacket:
    """Return the packet with a question in the second turn of a thread."""
    await talk.say("Read a")
    return (await talk.ask(ASK)).packet


@pytest.mark.parametrize(
    ("reply", "closed"),
    [
        ({"decisions": [{"type": "approve"}]}, RAN),
        (
            {"decisions": [EDIT]},
            f'The user changed the call to notebook.write_note {{"name":"b","text":"butter"}}. {RAN}',
        ),
        ({"decisions": [{"type": "reject"}]}, "The user denied the call; it did not run."),
        (
            {"decisions": [{"type": "reject", "message": "not there"}]},
            "The user denied the call; it did not run. The user said: not there",
        ),
        (
            {"decisions": [{"type": "respond", "message": "no, not there"}]},
            "The user denied the call; it did not run. The user said: no, not there",
        ),
        ("skip", "The call did not run."),
    ],
    ids=str,
)
async def test_a_question_in_a_second_turn_has_valid_messages(notebook: Notebook, reply: Any, closed: str) -> None:
    async with session(scripted(READ, none(), WRITE, none()), notebook, allow_write_tools=True) as talk:
        asks = await second_turn(talk)
        last = asks.messages[-1]
        assert isinstance(last, AIMessage)
        (wants,) = last.tool_calls
        assert (wants["name"], wants["args"]) == ("notebook.write_note", {"name": "a", "text": "avocado"})
        assert [one.type for one in asks.history] == ["human", "ai"], "the earlier turns in prompts"
        packet = await talk.reply(reply)
    assert kinds(packet.messages) == ["human", "ai", "human", "call", "tool", "ai"]
    assert are_valid_messages(packet.messages)
    assert closings(packet) == [closed]
    assert [one.type for one in packet.conversation] == ["human", "ai", "human", "ai"], "the conversation without calls"


async def test_each_of_two_calls_is_closed_by_a_tool_message(notebook: Notebook) -> None:
    async with session(scripted(BOTH), notebook, allow_write_tools=True) as talk:
        await talk.ask(ASK)
        packet = await talk.reply({"decisions": [{"type": "approve"}, {"type": "reject"}]})
    assert kinds(packet.messages) == ["human", "call", "tool", "tool", "ai"]
    assert are_valid_messages(packet.messages)
    assert closings(packet) == [RAN, "The user denied the call; it did not run."]


@pytest.mark.parametrize(
    ("words", "closed", "then"),
    [
        ("yes", RAN, ["ai"]),
        ("Hello", "The call waits for the user's decision.", ["call"]),
        ("Read the note a", "The call waits for the user's decision.", ["ai", "call"]),
        ("Read a", "The call did not run. The user said: Read a", ["ai"]),
    ],
)
async def test_a_message_during_a_question_follows_the_closed_call(
    notebook: Notebook, words: str, closed: str, then: list[str]
) -> None:
    """A front end may close the call itself and claim that it ran."""
    async with session(scripted(WRITE, READ), notebook, allow_write_tools=True) as talk:
        asks = (await talk.ask(ASK)).packet
        (wants,) = asks.messages[-1].tool_calls  # type: ignore[union-attr]
        claims = ToolMessage("Successfully handled tool call.", tool_call_id=wants["id"])
        out = await talk.graph.ainvoke({"messages": [claims, HumanMessage(words)]}, talk.config, context=talk.context)
    messages = out["messages"]
    assert kinds(messages) == ["human", "call", "tool", "human", *then]
    assert are_valid_messages(messages)
    assert messages[2].text == closed


async def test_a_fork_that_asks_again_has_a_valid_thread(notebook: Notebook) -> None:
    async with session(scripted(WRITE, none()), notebook, allow_write_tools=True) as talk:
        await talk.ask(ASK)
        states = [one async for one in talk.graph.aget_state_history(talk.config)]
        waiting = next(one.config for one in states if one.next == ("ask_user",))
        await talk.reply("yes")
        out = await talk.graph.ainvoke(Command(resume="yes"), waiting, context=talk.context)
        assert out["__interrupt__"][0].value["problem"]
        assert are_valid_messages(out["messages"])
        packet = await talk.reply({"decisions": [{"type": "reject"}]})
    assert are_valid_messages(packet.messages)
