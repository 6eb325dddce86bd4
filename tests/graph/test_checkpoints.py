"""Sections and messages are encoded once, to the bytes of LangGraph's serializer without computed fields."""

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from packetgate.graph.checkpoints import PacketSerializer
from packetgate.state.packet import checkpoint_types
from packetgate.state.routing import ToolCall, ToolResult, ToolRouting
from packetgate.state.sections import Header, Intent, Reasoning, Reflection

PLAIN = JsonPlusSerializer(allowed_msgpack_modules=checkpoint_types())
ROUTING = ToolRouting(calls=(ToolCall(tool_name="a.b", params={"c": [1, None]}),))
REASONING = Reasoning().with_reflections(Reflection(step="a", summary="b", confidence=0.7))

MESSAGES = [HumanMessage("hi", id="1"), AIMessage("there", id="2", tool_calls=[{"name": "a", "args": {}, "id": "3"}])]


@pytest.mark.parametrize(
    "value",
    [Header(), REASONING, [HumanMessage("hi"), AIMessage("a", id="1")], [], "text", None, b"bytes", {"a": 1}],
)
def test_a_value_is_encoded_as_langgraph_does(value: object) -> None:
    assert PacketSerializer().dumps_typed(value) == PLAIN.dumps_typed(value)


def test_a_checkpoint_is_encoded_as_langgraph_does() -> None:
    checkpoint = {"v": 4, "channel_values": {"header": Header(), "reasoning": REASONING, "messages": MESSAGES}}
    ours = PacketSerializer()
    for _ in range(2):
        encoded = ours.dumps_typed(checkpoint)
        assert encoded == PLAIN.dumps_typed(checkpoint)
    assert ours.loads_typed(encoded) == checkpoint
    assert isinstance(checkpoint["channel_values"]["header"], Header)  # type: ignore[index]


def test_an_unchanged_section_is_encoded_once() -> None:
    (call,) = ROUTING.calls
    done = ROUTING.changed(calls=(call.model_copy(update={"result": ToolResult(success=True, output="x" * 5_000)}),))
    ours, plain = PacketSerializer().dumps_typed(done), PLAIN.dumps_typed(done)
    assert len(ours[1]) < 7_000 < 10_000 < len(plain[1])
    assert PacketSerializer().loads_typed(ours) == PacketSerializer().loads_typed(plain) == done


def test_a_changed_message_is_encoded_again() -> None:
    """Graphs set the ids of messages, and users edit messages in notebooks."""
    message = HumanMessage([{"type": "text", "text": "hi"}])
    serializer = PacketSerializer()
    serializer.dumps_typed([message])
    message.id = "1"
    assert serializer.loads_typed(serializer.dumps_typed([message])) == [message]
    message.content[0]["text"] = "bye"  # type: ignore[index]
    (now,) = serializer.loads_typed(serializer.dumps_typed([message]))
    assert (now.id, now.text) == ("1", "bye")


def test_cached_sections_do_not_mix_and_end_with_their_packet() -> None:
    serializer = PacketSerializer()
    for number in range(1000):
        intent = Intent(user_intent=str(number))
        assert serializer.loads_typed(serializer.dumps_typed(intent)) == intent
    del intent
    assert serializer._encoded == {}
