import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from support.full_packet import full_packet, inside
from support.origins import words

from packetgate.state.base import Section
from packetgate.state.errors import PacketError, PacketVersionError
from packetgate.state.packet import CognitionPacket, PacketUpdate, read_packet
from packetgate.state.sections import PACKET_VERSION, Governance, Header, Response


def test_the_full_packet_leaves_nothing_as_it_starts():
    """Else the round trips below would prove less than they say."""
    packet = full_packet()
    untouched = [
        f"{type(part).__name__}.{name}"
        for part in inside(packet)
        if isinstance(part, Section | CognitionPacket)
        for name, field in type(part).model_fields.items()
        if getattr(part, name) == field.get_default(call_default_factory=True, validated_data={})
    ]
    assert untouched == ["Header.version"] * 2, "its own, and that of what is put aside"


@pytest.mark.parametrize("packet", [full_packet(), CognitionPacket()], ids=["full", "empty"])
def test_a_packet_survives_json(packet: CognitionPacket):
    text = packet.model_dump_json()
    assert read_packet(text) == packet
    assert read_packet(text.encode()) == packet
    assert read_packet(json.dumps(packet.model_dump(mode="json"), indent=2)) == packet
    assert [type(message) for message in read_packet(text).messages] == [type(one) for one in packet.messages]


def test_the_first_call_stands_in_the_json_by_itself():
    """What is computed of it is written, never read back: the calls say what happened."""
    written = full_packet().model_dump(mode="json")
    routing, call = written["tool_routing"], written["tool_routing"]["calls"][0]
    computed = {name: routing[name] for name in ("selected_tool", "execution_status", "review_confidence")}
    assert computed == {
        "selected_tool": call["tool_name"],
        "execution_status": call["status"],
        "review_confidence": call["review_confidence"],
    }
    assert routing["execution_result"] == call["result"]
    forged = {**written, "tool_routing": {**routing, "execution_status": "executed", "execution_result": None}}
    assert read_packet(json.dumps(forged)) == full_packet()


def test_a_packet_from_before_confidences_could_be_missing_still_loads():
    packet = full_packet().model_dump(mode="json")
    packet["header"]["version"] = 1
    packet["intent"]["confidence"], packet["response"]["confidence"] = 0.0, 0.8
    read = read_packet(json.dumps(packet))
    assert (read.intent.confidence, read.response.confidence) == (0.0, 0.8)


@pytest.mark.parametrize("version", [PACKET_VERSION + 1, 999, str(PACKET_VERSION + 1), float(PACKET_VERSION + 1)])
@pytest.mark.parametrize("beside", [{}, {"not_known_here": 1}])
def test_a_newer_packet_says_so_and_nothing_else(version: object, beside: dict[str, int]):
    packet: dict[str, Any] = full_packet().model_dump(mode="json")
    packet["header"] |= {"version": version, **beside}
    packet |= beside
    packet["intent"] |= {"access": "teleport", **beside}
    with pytest.raises(PacketVersionError, match=rf"version {PACKET_VERSION + 1}|version 999") as caught:
        read_packet(json.dumps(packet))
    assert "upgrade Packetgate" in str(caught.value)


def test_a_newer_header_anywhere_says_so():
    with pytest.raises(PacketVersionError):
        Header.model_validate({"version": PACKET_VERSION + 1})
    with pytest.raises(PacketVersionError):
        CognitionPacket.model_validate({"messages": [], "header": {"version": PACKET_VERSION + 1}})


def test_a_packet_of_version_1_is_read():
    old = full_packet().model_dump(mode="json")
    old["header"] |= {"version": 1}
    old["governance"] = {"dry_run": False, "approvals": [], "ask_expires_at": "2026-03-01T01:00:00+02:00", "audit": []}
    assert read_packet(json.dumps(old)).governance.question is None


def test_a_packet_of_version_2_is_read():
    old = full_packet().model_dump(mode="json")
    old["header"] |= {"version": 2}
    old["tool_routing"]["calls"][0]["provenance"] = {"a": "user", "b": "default", "c": "model", "d": "tool:mail.read"}
    (call,) = read_packet(json.dumps(old)).routing.calls
    assert words(call.provenance) == {"a": "user", "b": "default", "c": "nobody", "d": "text:mail.read"}
    assert not call.is_loud


@pytest.mark.parametrize(
    ("data", "spot"),
    [
        ("", "the whole"),
        ("{", "the whole"),
        ("null", "the whole"),
        ("[]", "the whole"),
        ('"packet"', "the whole"),
        (b"\xff\xfe\x00", "the whole"),
        ("[" * 100_000, "the whole"),
        ('{"unknown_section": {}}', "unknown_section"),
        ('{"header": null}', "header"),
        ('{"governance": [1]}', "governance"),
        ('{"governance": null}', "governance"),
        ('{"header": {"version": "new"}}', "header.version"),
        ('{"header": {"colour": "red"}}', "header.colour"),
        ('{"intent": {"confidence": 1.01}}', "intent.confidence"),
        ('{"intent": {"access": "teleport"}}', "intent.access"),
        ('{"context": {"palette": [{"tool_name": "a.b"}]}}', "context.palette.0.shown"),
        ('{"tool_routing": {"calls": [{"tool_name": "a.b", "status": "done"}]}}', "tool_routing.calls.0.status"),
        ('{"messages": [{"type": "nobody", "content": ""}]}', "messages.0"),
        ('{"messages": [null]}', "messages"),
        ('{"messages": [{"type": "ai", "content": "", "additional_kwargs": null}]}', "messages"),
    ],
)
def test_garbage_is_named_by_its_spot(data: str | bytes, spot: str):
    with pytest.raises(PacketError, match=rf"^not a packet: {spot}: \S") as caught:
        read_packet(data)
    assert not isinstance(caught.value, PacketVersionError)
    assert len(str(caught.value)) < 1000


def test_merged_replaces_sections_and_adds_messages():
    packet = full_packet()
    update: PacketUpdate = {
        "response": Response(candidate="Other."),
        "tool_routing": None,
        "messages": [AIMessage("Corrected.", id="m2"), HumanMessage("And?", id="m3")],
    }
    merged = packet.merged(update)
    assert merged.response.candidate == "Other."
    assert merged.tool_routing is None
    assert [(one.id, one.text) for one in merged.messages] == [
        ("m1", "write it"),
        ("m2", "Corrected."),
        ("m3", "And?"),
    ]
    assert merged.content is packet.content
    assert packet == full_packet()


def test_merged_without_changes_is_equal():
    assert full_packet().merged({}) == full_packet()


def test_routing_of_a_turn_without_tools_is_an_error():
    with pytest.raises(PacketError, match="packet p9 has no tool routing"):
        _ = CognitionPacket(header=Header(packet_id="p9")).routing
    assert full_packet().routing is not None


def test_sections_are_frozen():
    with pytest.raises(ValueError, match="frozen"):
        full_packet().intent.user_intent = "other"  # type: ignore[misc]
    with pytest.raises(ValueError, match="frozen"):
        full_packet().governance = Governance()  # type: ignore[misc]
