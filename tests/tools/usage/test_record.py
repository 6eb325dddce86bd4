"""What a turn's record holds, and what it leaves out."""

from datetime import UTC

import pytest
from support.full_packet import CALL, full_packet
from support.packets import asking, done, packet, with_error, with_output

from packetgate.state.base import ConfidenceSource, ErrorType
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import ToolExecutionStatus as Status
from packetgate.state.routing import ToolResult
from packetgate.state.sections import Access, DecidedBy, Reasoning, Reflection
from packetgate.tools.usage.record import ASKED_CHARS, NAME_CHARS, ShownTool, UsageRecord, record_of, with_context


def passes(*decided_by: DecidedBy) -> Reasoning:
    """Return the log of passes that each made calls, after a first selection that missed."""
    steps = [Reflection(step="select_tool", summary="missed", decided_by="model"), _entry("build_palette")]
    for decider in decided_by:
        steps += [_entry("select_tool", decider), _entry("review_selection", "model"), _entry("execute_tool")]
    return Reasoning(reflection_log=tuple(steps))


def _entry(step: str, decided_by: DecidedBy | None = None) -> Reflection:
    return Reflection(step=step, summary="", decided_by=decided_by)


def test_the_record_of_a_full_packet() -> None:
    full = full_packet()
    record = record_of(full)
    assert (record.session_id, record.packet_id, record.at) == ("s", "p2", full.header.created_at)
    assert record.at.tzinfo is UTC
    assert (record.asked, record.context_type, record.access) == ("write it", "code", Access.MIXED)
    assert record.palette == (ShownTool(tool="files.write_file", reason="ranked"),)
    assert (record.outcome, record.missed) == ("call", ("files.wrote",))
    earlier, call = record.calls
    assert call.tool == "files.write_file"
    assert call.arguments == tuple(CALL.params)
    assert (call.selection_confidence, call.selection_confidence_source) == (0.1 + 0.2, ConfidenceSource.MEASURED)
    assert (call.review_confidence, call.review_confidence_source) == (0.7, ConfidenceSource.STATED)
    assert (call.approval, call.status) == (None, Status.UNKNOWN)  # a rule stood for the user's word
    assert (call.execution_ms, call.dry_run, call.error) == (12.345, True, "timeout")
    assert (earlier.review_confidence, earlier.approval) == (None, None)  # only the other was judged, and asked about


def test_a_turn_without_tools() -> None:
    record = record_of(asking("Hello"))
    assert (record.outcome, record.calls, record.missed) == (None, (), ())


def test_no_value_and_no_words_of_a_result_are_recorded() -> None:
    read = with_output(done("files.read_file", path="zanzibar.txt"), "quinquereme")
    broken = with_error(done("files.search_files", Status.FAILED, why="aardvark", query="zanzibar"), "no zanzibar")
    written = record_of(packet("Read it", read, broken)).model_dump_json()
    assert '"arguments":["path"]' in written
    assert [word for word in ("zanzibar", "quinquereme", "aardvark") if word in written] == []


def test_an_error_without_an_answer() -> None:
    lost = with_error(done("files.write_file", Status.UNKNOWN), "the server died")
    told = done("files.read_file", Status.FAILED).model_copy(
        update={"result": ToolResult(success=False, error="no such file", error_type=ErrorType.TOOL_ERROR)}
    )
    fine = with_output(done("files.read_file"), "text")
    errors = [call.error for call in record_of(packet("Go on", lost, told, fine)).calls]
    assert errors == ["no_answer", "tool_error", None]


def test_sessions_of_the_proxy_that_set_a_context() -> None:
    def said(session_id: str, asked: str, origin: str = "proxy") -> UsageRecord:
        return record_of(asking(asked)).model_copy(update={"session_id": session_id, "origin": origin, "asked": asked})

    assert with_context([]) == (0, 0)
    proxied = [said("proxy-a", ""), said("proxy-a-1", "x"), said("proxy-b", ""), said("proxy-b", "")]
    assert with_context([*proxied, said("s", "x", "terminal")]) == (1, 2)


def test_long_and_odd_texts_are_cut_and_can_be_kept() -> None:
    odd = done("files.read_file", **{"\0" + "n" * 300: 1, "\ud800": 2})
    record = record_of(packet("long " * 1_000, odd, missed_tools=("sing\0" * 100,)))
    assert record.asked == ("long " * 1_000)[:ASKED_CHARS]
    assert record.calls[0].arguments == ("\N{REPLACEMENT CHARACTER}" + "n" * (NAME_CHARS - 1), "?")
    assert len(record.missed[0]) == NAME_CHARS
    assert "\\u0000" not in record.model_dump_json()


@pytest.mark.parametrize(
    ("decided_by", "calls", "expected"),
    [
        (("model", "reflex"), 2, ["model", "reflex"]),
        (("model",), 3, ["model"] * 3),
        (("reflex", "reflex"), 3, ["reflex"] * 3),
        (("model", "reflex"), 3, [None] * 3),
    ],
)
def test_who_decided(decided_by: tuple[DecidedBy, ...], calls: int, expected: list[DecidedBy | None]) -> None:
    made = [done("files.read_file", path=str(number)) for number in range(calls)]
    told: CognitionPacket = packet("Read them", *made).model_copy(update={"reasoning": passes(*decided_by)})
    assert [call.decided_by for call in record_of(told).calls] == expected


def test_a_record_survives_json_and_fields_of_a_later_release() -> None:
    record = record_of(full_packet())
    assert UsageRecord.model_validate_json(record.model_dump_json()) == record
    later = {**record.model_dump(mode="json"), "mood": "good"}
    assert UsageRecord.model_validate(later) == record
