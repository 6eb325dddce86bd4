import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from support.full_packet import full_packet, inside

from packetgate.state.base import Section
from packetgate.state.codes import Code
from packetgate.state.errors import PacketError, PacketVersionError, RequestError
from packetgate.state.origins import FlowLabel
from packetgate.state.packet import (
    CLIENT_SUPPLIED,
    RESULT_LABELS,
    CognitionPacket,
    PacketUpdate,
    check_update,
    read_packet,
)
from packetgate.state.routing import ToolRouting
from packetgate.state.sections import PACKET_VERSION, Attachment, Content, Governance, Header, Response


def test_the_full_packet_leaves_no_field_at_its_default():
    """Otherwise the round trips below would not test every field."""
    packet = full_packet()
    untouched = [
        f"{type(part).__name__}.{name}"
        for part in inside(packet)
        if isinstance(part, Section | CognitionPacket)
        for name, field in type(part).model_fields.items()
        if getattr(part, name) == field.get_default(call_default_factory=True, validated_data={})
    ]
    assert untouched == ["Header.version"] * 2, "the version of the packet, and that of its parked turn"


@pytest.mark.parametrize("packet", [full_packet(), CognitionPacket()], ids=["full", "empty"])
def test_a_packet_survives_json(packet: CognitionPacket):
    text = packet.model_dump_json()
    assert read_packet(text) == packet
    assert read_packet(text.encode()) == packet
    assert read_packet(json.dumps(packet.model_dump(mode="json"), indent=2)) == packet
    assert [type(message) for message in read_packet(text).messages] == [type(one) for one in packet.messages]


def with_unknown_fields(value: Any) -> Any:
    """Return JSON in which the packet and each of its sections, settings and calls have a field of a newer version."""
    written = {**value, "colour": "red"}
    for name in ("header", "context", "governance", "tool_routing"):
        written[name] = {**value[name], "colour": ["red"]}
    written["governance"]["settings"] = {**value["governance"]["settings"], "colour": "red"}
    written["context"]["palette"] = [{**entry, "colour": None} for entry in value["context"]["palette"]]
    written["tool_routing"]["calls"] = [
        {**call, "result": call["result"] and {**call["result"], "colour": "red"}}
        for call in value["tool_routing"]["calls"]
    ]
    return written


def test_fields_of_a_newer_version_are_ignored():
    packet = full_packet()
    written = with_unknown_fields(packet.model_dump(mode="json"))
    assert json.dumps(written).count("red") >= 6
    assert read_packet(json.dumps(written)) == packet


def test_fields_that_an_older_version_did_not_write_have_their_defaults():
    written = full_packet().model_dump(mode="json")
    for section, name in (("header", "lineage"), ("context", "labels"), ("tool_routing", "note"), ("intent", "access")):
        del written[section][name]
    del written["governance"]["settings"]["persona"], written["parked_turns"]
    packet = read_packet(json.dumps(written))
    assert (packet.header.lineage, packet.context.labels, packet.routing.note, packet.parked_turns) == ((), (), "", ())
    assert packet.intent.access == "read"
    assert packet.governance.settings.persona == ""


def test_an_update_from_outside_must_not_have_unknown_fields():
    for values in (
        {"colour": "red"},
        {"header": {"colour": "red"}},
        {"tool_routing": {"calls": [{"tool_name": "a.b", "colour": "red"}]}},
    ):
        with pytest.raises(RequestError, match="colour"):
            check_update(values)


def test_a_changed_field_must_exist():
    with pytest.raises(ValueError, match="colour"):
        Header().changed(colour="red")


@pytest.mark.parametrize("version", [PACKET_VERSION + 1, PACKET_VERSION - 1, 1, str(PACKET_VERSION + 1)])
@pytest.mark.parametrize("unknown", [{}, {"not_known_here": 1}])
def test_another_version_is_refused_before_other_errors(version: object, unknown: dict[str, int]):
    packet: dict[str, Any] = full_packet().model_dump(mode="json")
    packet["header"] |= {"version": version, **unknown}
    packet |= unknown
    packet["intent"] |= {"access": "teleport", **unknown}
    with pytest.raises(PacketVersionError, match=f"packet version {version} ") as caught:
        read_packet(json.dumps(packet))
    assert caught.value.code == Code.PACKET_VERSION
    with pytest.raises(PacketVersionError):
        Header.model_validate({"version": version})


@pytest.mark.parametrize(
    ("data", "spot"),
    [
        ("", "value"),
        ("{", "value"),
        ("null", "value"),
        ("[]", "value"),
        ('"packet"', "value"),
        (b"\xff\xfe\x00", "value"),
        ("[" * 100_000, "value"),
        ('{"header": null}', "header"),
        ('{"governance": [1]}', "governance"),
        ('{"governance": null}', "governance"),
        ('{"header": {"version": "new"}}', "header.version"),
        ('{"intent": {"confidence": 1.01}}', "intent.confidence"),
        ('{"intent": {"access": "teleport"}}', "intent.access"),
        ('{"context": {"palette": [{"tool_name": "a.b"}]}}', "context.palette.0.detail"),
        ('{"tool_routing": {"calls": [{"tool_name": "a.b", "status": "done"}]}}', "tool_routing.calls.0.status"),
        ('{"messages": [{"type": "nobody", "content": ""}]}', "messages.0"),
        ('{"messages": [null]}', "messages"),
        ('{"messages": [{"type": "ai", "content": "", "additional_kwargs": null}]}', "messages"),
    ],
)
def test_invalid_data_is_named_by_its_field(data: str | bytes, spot: str):
    with pytest.raises(PacketError, match=rf"^not a packet: {spot}: \S") as caught:
        read_packet(data)
    assert not isinstance(caught.value, PacketVersionError)
    assert len(str(caught.value)) < 1000


def test_an_update_replaces_sections_and_adds_messages():
    packet = full_packet()
    update: PacketUpdate = {
        "response": Response(candidate="Other."),
        "tool_routing": None,
        "messages": [AIMessage("Corrected.", id="m2"), HumanMessage("And?", id="m3")],
    }
    merged = packet.with_update(update)
    assert merged.response.candidate == "Other."
    assert merged.tool_routing is None
    assert [(one.id, one.text) for one in merged.messages] == [
        ("m1", "write it"),
        ("m2", "Corrected."),
        ("m3", "And?"),
    ]
    assert merged.content is packet.content
    assert packet == full_packet()


def test_sections_are_frozen():
    with pytest.raises(ValueError, match="frozen"):
        full_packet().intent.user_intent = "other"  # type: ignore[misc]
    with pytest.raises(ValueError, match="frozen"):
        full_packet().governance = Governance()  # type: ignore[misc]


def test_a_stored_call_of_a_chain_is_read_and_its_queued_steps_do_not_run():
    stored = {"tool_name": "a.b", "params": {"x": "{1}"}, "chain": {"run": "c", "number": 2}}
    routing = ToolRouting.model_validate({"calls": [stored], "queued_calls": [stored, {**stored, "chain": None}]})
    assert [call.tool_name for call in routing.calls] == ["a.b"]
    assert len(routing.queued_calls) == 1


def test_an_attachment_and_a_supplied_message_set_both_labels():
    attached = CognitionPacket(content=Content(attachments=(Attachment(name="a.txt", text="x"),)))
    supplied = CognitionPacket(messages=[AIMessage("x", additional_kwargs={CLIENT_SUPPLIED: True})])
    for packet in (attached, supplied):
        assert {label.label for label in packet.labels} == {*FlowLabel}
    assert CognitionPacket().labels == ()


@pytest.mark.parametrize(
    ("named", "labels"),
    [
        ({}, [*FlowLabel]),
        ({RESULT_LABELS: []}, []),
        ({RESULT_LABELS: [FlowLabel.PRIVATE.value]}, [FlowLabel.PRIVATE]),
        ({RESULT_LABELS: ["no label"]}, [*FlowLabel]),
        ({RESULT_LABELS: None}, [*FlowLabel]),
    ],
)
def test_a_tool_message_sets_the_labels_that_it_names_and_otherwise_all(
    named: dict[str, Any], labels: list[FlowLabel]
) -> None:
    packet = CognitionPacket(messages=[ToolMessage("4711", tool_call_id="1", additional_kwargs=named)])
    assert [one.label for one in packet.labels] == labels
