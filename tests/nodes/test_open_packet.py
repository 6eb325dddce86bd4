"""Opening a packet: refused input, settings, images, and changes of an interrupted turn."""

import dataclasses
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.runtime import Runtime
from support.packets import FILES_TOOLBOX, done, packet

from packetgate.gate.journal import ENDED, STARTED, Entry, Journal, MemoryJournal
from packetgate.nodes.open_packet import open_packet
from packetgate.state.context import RoutingContext
from packetgate.state.errors import PacketVersionError, RequestError
from packetgate.state.packet import OpeningPacket, PacketUpdate
from packetgate.state.request import TurnRequest
from packetgate.state.routing import Risk
from packetgate.state.sections import PACKET_VERSION, Attachment, Header
from packetgate.state.transitions import ToolExecutionStatus

HI = OpeningPacket(messages=[HumanMessage("Hi")])
JOURNAL = MemoryJournal()


async def opened(given: OpeningPacket = HI, context: Any = None, journal: Journal = JOURNAL) -> PacketUpdate:
    return await open_packet(given, Runtime(context=context), journal=journal, toolbox=FILES_TOOLBOX)


@pytest.mark.parametrize("messages", [[], [AIMessage("Hello!")], [HumanMessage("Hi"), AIMessage("Hello!")]])
async def test_a_turn_starts_with_a_user_message(messages: list):
    with pytest.raises(RequestError, match="a turn starts with a user message"):
        await opened(OpeningPacket(messages=messages))


async def test_a_session_of_another_version_is_refused():
    newer = Header.model_construct(version=PACKET_VERSION + 1)
    with pytest.raises(PacketVersionError):
        await opened(HI.model_copy(update={"header": newer}))


@pytest.mark.parametrize(
    ("context", "dry"),
    [
        (RoutingContext(), True),
        (RoutingContext(allow_write_tools=True), False),
        (RoutingContext(allow_execute_tools=True), False),
        (None, True),
        ({"allow_write_tools": True}, False),
    ],
    ids=["default", "writes", "commands", "none", "over HTTP"],
)
async def test_without_writes_and_commands_a_turn_is_a_dry_run(context: Any, dry: bool):
    assert (await opened(context=context))["governance"].dry_run is dry


async def test_pictures_stay_in_the_packet_for_three_more_turns():
    cat = Attachment(name="cat.png", mime_type="image/png", handle="kept:1")
    text = Attachment(name="a.txt", text="Ask.")
    packet = OpeningPacket(messages=[HumanMessage("What is it?")], request=TurnRequest(attachments=(cat, text)))
    pictured = []
    for _ in range(5):
        turn = packet.with_update(await opened(packet))
        pictured.append([one.name for one in turn.context.earlier_pictures])
        packet = OpeningPacket.model_validate({**vars(turn), "request": TurnRequest()})
    assert pictured == [[], ["cat.png"], ["cat.png"], ["cat.png"], []]


@pytest.mark.parametrize(
    ("ends", "says"),
    [
        ([], "and it is not known whether it finished"),
        ([Entry(ENDED, detail={"attempt": 1, "status": "executed"})], "but the result was not reported"),
    ],
)
async def test_changes_of_an_interrupted_turn_are_reported(ends: list[Entry], says: str):
    write = done("files.delete_file", ToolExecutionStatus.APPROVED, path="a.txt").model_copy(
        update={"risk": Risk.WRITE, "result": None}
    )
    before = packet("Delete a.txt", write).model_copy(update={"messages": HI.messages})
    given = OpeningPacket.model_validate(dict(before))
    journal = MemoryJournal()
    assert (await opened(given, journal=journal))["governance"].dropped_notes == ()
    for entry in (Entry(STARTED, detail={"attempt": 1}), *ends):
        at = {"packet_id": given.header.packet_id, "call_id": write.call_id}
        await journal.record(dataclasses.replace(entry, **at))
    (note,) = (await opened(given, journal=journal))["governance"].dropped_notes
    assert note.startswith("files.delete_file: ")
    assert says in note
