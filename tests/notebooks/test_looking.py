"""Tables of the notebooks."""

from notebooks.looking import changes, journey, table
from packetgate.state.base import ConfidenceSource
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import ToolCall, ToolRouting
from packetgate.state.sections import Content, Reasoning, Reflection


def test_cells_are_escaped_text_and_lists_have_one_item_per_line():
    shown = table(("a", "b"), [("<b>", ["x", {"k": "v", "n": [1]}]), (0.5, "word " * 99)]).data
    assert "&lt;b&gt;" in shown
    assert "x\nk: v, n: [1]" in shown
    assert "word …</td>" in shown
    assert shown.count("<tr>") == 3
    assert shown.count("<th ") == 2


def test_only_changes_are_shown_without_ids_and_times():
    first = Reflection(step="one", summary="first")
    call = ToolCall(tool_name="files.read_file", params={"path": "a.txt"})
    before = CognitionPacket(
        reasoning=Reasoning(reflection_log=(first,)),
        content=Content(original_prompt="Read a.txt"),
        tool_routing=ToolRouting(calls=(call,)),
    )
    second = Reflection(step="two", summary="second", confidence=2 / 3)
    judged = call.model_copy(update={"review_reasoning": "it fits"})
    after = before.with_update(
        {"reasoning": before.reasoning.with_reflections(second), "tool_routing": ToolRouting(calls=(judged,))},
    )
    shown = changes(before, after).data
    assert "step: two, summary: second, confidence: 0.67" in shown
    assert ">review_reasoning: it fits<" in shown
    for absent in ("first", "Read a.txt", "files.read_file", "created_at", first.at.isoformat()):
        assert absent not in shown


def test_without_changes_the_table_is_empty():
    packet = CognitionPacket()
    assert changes(packet, packet).data.count("<tr>") == 1


def test_a_journey_has_two_digits_and_neither_times_nor_ids():
    log = (
        Reflection(
            step="review",
            summary="fits",
            confidence=2 / 3,
            confidence_source=ConfidenceSource.CALIBRATED,
            decided_by="model",
            latency_ms=12.3,
        ),
        Reflection(step="execute", summary="read: executed in 47 ms, as result_17f99750"),
    )
    shown = journey(CognitionPacket(reasoning=Reasoning(reflection_log=log))).data
    assert [">model<" in shown, ">rule<" in shown, ">0.67<" in shown, "12" in shown] == [True, True, True, False]
    assert ">read: executed, as result_…<" in shown
