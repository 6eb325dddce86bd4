"""A checkpoint restores our own types exactly, and no unlisted type."""

from enum import Enum
from importlib import import_module
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from pydantic import create_model
from support.full_packet import full_packet, inside

from packetgate.gate.replies import CallReply
from packetgate.graph.checkpoints import PacketSerializer
from packetgate.state.channels import SwitchHints
from packetgate.state.context import RoutingContext
from packetgate.state.packet import TurnInput, checkpoint_types
from packetgate.state.request import TurnRequest
from packetgate.state.routing import ToolRouting
from packetgate.state.sections import Attachment
from packetgate.tools.spec.tool_spec import ToolSpec

REQUEST = TurnRequest(
    origin="discord",
    person="7",
    context_type="code",
    attachments=(Attachment(name="a.txt", text="text"),),
    switch_hints=SwitchHints.from_commands("/writes on", "/commands on", "/rest"),
    is_new=True,
)

INPUT = TurnInput(messages=[HumanMessage("hi", id="1")], request=REQUEST)


def examples(kind: type) -> list[Any]:
    """Return every value of an enum; for a section, the values in the full packet."""
    if issubclass(kind, Enum):
        return list(kind)
    return [part for part in (*inside(full_packet()), REQUEST, INPUT) if type(part) is kind]


def restored(value: Any, through: JsonPlusSerializer) -> Any:
    return through.loads_typed(through.dumps_typed(value))


@pytest.mark.parametrize(("module", "name"), checkpoint_types())
def test_every_type_is_restored_without_change(module: str, name: str):
    kind = getattr(import_module(module), name)
    assert (kind.__module__, kind.__name__) == (module, name)
    if name == "Section":
        return
    values = examples(kind)
    assert values
    for value in values:
        back = restored({"channel": [value]}, PacketSerializer())["channel"][0]
        assert type(back) is kind
        assert back == value
        assert [type(part) for part in inside(back)] == [type(part) for part in inside(value)]


def test_every_type_in_a_packet_is_listed():
    ours = {
        (type(part).__module__, type(part).__name__)
        for part in inside(full_packet())
        if type(part).__module__.startswith("packetgate.state.")
    }
    within = {("packetgate.state.context", "RoutingContext")}  # its section restores it
    assert ours - {("packetgate.state.packet", "CognitionPacket")} - within <= set(checkpoint_types())


def test_messages_are_restored():
    messages = full_packet().messages
    assert restored(messages, PacketSerializer()) == messages


@pytest.mark.parametrize(
    "stranger",
    [RoutingContext(), ToolSpec("a.b", "a", "b", "full", "brief", {}, risk=None), CallReply(None)],  # type: ignore[arg-type]
    ids=["model", "dataclass", "other dataclass"],
)
def test_an_unlisted_type_is_not_restored(stranger: Any):
    assert type(restored(stranger, JsonPlusSerializer(allowed_msgpack_modules=True))) is type(stranger)
    assert type(restored(stranger, PacketSerializer())) is not type(stranger)


@pytest.mark.parametrize("serializer", [PacketSerializer(), JsonPlusSerializer()], ids=["ours", "a server's"])
def test_a_section_of_another_version_is_restored(serializer: JsonPlusSerializer):
    """An unknown field is ignored, and a missing field has its default."""
    routing = full_packet().tool_routing
    assert routing is not None
    names = {"__module__": ToolRouting.__module__}
    newer = create_model("ToolRouting", __base__=ToolRouting, **names, colour=(str, "red"))
    fields = {name: (Any, ...) for name in ToolRouting.model_fields if name != "note"}
    older = create_model("ToolRouting", **names, **fields)
    for kind, expected in ((newer, routing), (older, routing.changed(note=""))):
        encoded = serializer.dumps_typed({"channel": kind(**dict(routing))})
        assert (b"colour" in encoded[1], b"note" in encoded[1]) == (kind is newer, kind is newer)
        assert serializer.loads_typed(encoded) == {"channel": expected}
