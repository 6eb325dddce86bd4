"""Opening a packet: refused input, settings, pictures, and changes of an interrupted turn."""

import dataclasses

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.runtime import Runtime
from support.packets import FILES_TOOLBOX, done, packet

from packetgate.gate.journal import ENDED, STARTED, Entry, MemoryJournal
from packetgate.nodes.open_packet import open_packet
from packetgate.state.context import RoutingContext
from packetgate.state.errors import PacketVersionError, RequestError
from packetgate.state.packet import OpeningPacket
from packetgate.state.request import TurnRequest
from packetgate.state.routing import Risk
from packetgate.state.sections import PACKET_VERSION, Attachment, Header
from packetgate.state.transitions import ToolExecutionStatus

JOURNAL = MemoryJournal()
RUNTIME: Runtime[RoutingContext] = Runtime(context=RoutingContext())


@pytest.mark.parametrize("messages", [[], [AIMessage("Hello!")], [HumanMessage("Hi"), AIMessage("Hello!")]])
async def test_a_turn_starts_with_a_user_message(messages: list):
    with pytest.raises(RequestError, match="a turn starts with a user message"):
        await open_packet(OpeningPacket(messages=messages), RUNTIME, journal=JOURNAL, toolbox=FILES_TOOLBOX)


async def test_a_session_of_another_version_is_refused():
    newer = Header.model_construct(version=PACKET_VERSION + 1)
    packet = OpeningPacket(messages=[HumanMessage("Hi")]).model_copy(update={"header": newer})
    with pytest.raises(PacketVersionError):
        await open_packet(packet, RUNTIME, journal=JOURNAL, toolbox=FILES_TOOLBOX)


@pytest.mark.parametrize(
    ("write", "execute", "dry"), [(False, False, True), (True, False, False), (False, True, False)]
)
async def test_without_writes_and_commands_a_turn_is_a_dry_run(write: int, execute: int, dry: bool):
    runtime = Runtime(context=RoutingContext(allow_write_tools=write, allow_execute_tools=execute))
    update = await open_packet(
        OpeningPacket(messages=[HumanMessage("Hi")]), runtime, journal=JOURNAL, toolbox=FILES_TOOLBOX
    )
    assert update["governance"].dry_run is dry


async def test_settings_can_be_missing_or_a_dictionary():
    given = OpeningPacket(messages=[HumanMessage("Hi")])
    assert (await open_packet(given, Runtime(context=None), journal=JOURNAL, toolbox=FILES_TOOLBOX))[
        "governance"
    ].dry_run  # type: ignore[arg-type]
    over_http = Runtime(context={"allow_write_tools": True})
    assert not (await open_packet(given, over_http, journal=JOURNAL, toolbox=FILES_TOOLBOX))["governance"].dry_run  # type: ignore[arg-type]


async def test_pictures_stay_in_the_packet_for_three_more_turns():
    cat = Attachment(name="cat.png", mime_type="image/png", handle="kept:1")
    text = Attachment(name="a.txt", text="Ask.")
    packet = OpeningPacket(messages=[HumanMessage("What is it?")], request=TurnRequest(attachments=(cat, text)))
    pictured = []
    for _ in range(5):
        opened = packet.with_update(await open_packet(packet, RUNTIME, journal=JOURNAL, toolbox=FILES_TOOLBOX))
        pictured.append([one.name for one in opened.context.earlier_pictures])
        packet = OpeningPacket.model_validate({**vars(opened), "request": TurnRequest()})
    assert pictured == [[], ["cat.png"], ["cat.png"], ["cat.png"], []]


@pytest.mark.parametrize(
    ("ends", "says"),
    [
        ([], "and it is not known whether it finished"),
        (
            [Entry(ENDED, detail={"attempt": 1, "status": "executed"})],
            "but the result was not reported",
        ),
    ],
)
async def test_changes_of_an_interrupted_turn_are_reported(ends: list[Entry], says: str):
    write = done("files.delete_file", ToolExecutionStatus.APPROVED, path="a.txt").model_copy(
        update={"risk": Risk.WRITE, "result": None}
    )
    before = packet("Delete a.txt", write)
    message = HumanMessage("Hi")
    given = OpeningPacket.model_validate(dict(before.model_copy(update={"messages": [message]})))
    journal = MemoryJournal()
    assert (await open_packet(given, RUNTIME, journal=journal, toolbox=FILES_TOOLBOX))["governance"].dropped_notes == ()
    for entry in (Entry(STARTED, detail={"attempt": 1}), *ends):
        at = {"packet_id": given.header.packet_id, "call_id": write.call_id}
        await journal.record(dataclasses.replace(entry, **at))
    (note,) = (await open_packet(given, RUNTIME, journal=journal, toolbox=FILES_TOOLBOX))["governance"].dropped_notes
    assert note.startswith("files.delete_file: ")
    assert says in note
