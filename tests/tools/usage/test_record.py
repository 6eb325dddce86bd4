"""Records of turns, and the summary by tool."""

from datetime import UTC, timedelta

from support.full_packet import CALL, full_packet
from support.packets import asking, done, packet, with_error, with_output
from support.usage import NOON, turn, used

from packetgate.state.base import ConfidenceSource, ErrorType
from packetgate.state.routing import ToolResult
from packetgate.state.sections import Access
from packetgate.state.transitions import ToolExecutionStatus as Status
from packetgate.tools.usage.record import (
    MAX_LABEL_CHARS,
    RECORDED_CHARS,
    ShownTool,
    ToolUsage,
    UsageRecord,
    count_proxy_sessions,
    usage_by_tool,
    usage_record,
)


def test_the_record_of_a_full_packet() -> None:
    full = full_packet()
    record = usage_record(full)
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


def test_the_record_of_a_turn_without_tools() -> None:
    record = usage_record(asking("Hello"))
    assert (record.outcome, record.calls, record.missed) == (None, (), ())


def test_no_values_and_no_results_are_recorded() -> None:
    read = with_output(done("files.read_file", path="zanzibar.txt"), "quinquereme")
    broken = with_error(done("files.search_files", Status.FAILED, why="aardvark", query="zanzibar"), "no zanzibar")
    written = usage_record(packet("Read it", read, broken)).model_dump_json()
    assert '"arguments":["path"]' in written
    assert [word for word in ("zanzibar", "quinquereme", "aardvark") if word in written] == []


def test_the_record_of_a_failed_turn() -> None:
    lost = with_error(done("files.write_file", Status.UNKNOWN), "the server died")
    told = done("files.read_file", Status.FAILED).model_copy(
        update={"result": ToolResult(success=False, error="no such file", error_type=ErrorType.TOOL_ERROR)}
    )
    fine = with_output(done("files.read_file"), "text")
    errors = [call.error for call in usage_record(packet("Go on", lost, told, fine)).calls]
    assert errors == ["no_answer", "tool_error", None]


def test_proxy_sessions_that_set_a_context_are_counted() -> None:
    def record(session_id: str, request: str, origin: str = "proxy") -> UsageRecord:
        changes = {"session_id": session_id, "origin": origin, "asked": request}
        return usage_record(full_packet()).model_copy(update=changes)

    assert count_proxy_sessions([]) == (0, 0)
    proxied = [record("proxy-a", ""), record("proxy-a-1", "x"), record("proxy-b", ""), record("proxy-b", "")]
    assert count_proxy_sessions([*proxied, record("s", "x", "terminal")]) == (1, 2)


def test_long_texts_are_cut_and_storable() -> None:
    odd = done("files.read_file", **{"\0" + "n" * 300: 1, "\ud800": 2})
    record = usage_record(packet("long " * 1_000, odd, missed_tools=("sing\0" * 100,)))
    assert record.asked == ("long " * 1_000)[:RECORDED_CHARS]
    assert record.calls[0].arguments == ("\N{REPLACEMENT CHARACTER}" + "n" * (MAX_LABEL_CHARS - 1), "?")
    assert len(record.missed[0]) == MAX_LABEL_CHARS
    assert "\\u0000" not in record.model_dump_json()


def test_a_record_survives_json_and_fields_of_a_later_release() -> None:
    record = usage_record(full_packet())
    assert UsageRecord.model_validate_json(record.model_dump_json()) == record
    later = {**record.model_dump(mode="json"), "mood": "good"}
    assert UsageRecord.model_validate(later) == record


def test_outcomes_are_counted_by_tool() -> None:
    ends = [Status.EXECUTED, Status.EXECUTED, Status.FAILED, Status.USER_DENIED, Status.SKIPPED, Status.UNKNOWN]
    reviews = [0.9, 0.8, None, 0.4, None, None]
    calls = [used("ai.read", end, review_confidence=review) for end, review in zip(ends, reviews, strict=True)]
    early = turn("p1", *calls[:4]).model_copy(update={"at": NOON})
    late = turn("p2", *calls[4:]).model_copy(update={"at": NOON + timedelta(hours=1)})
    (usage,) = usage_by_tool([late, early])
    assert usage == ToolUsage(
        tool="ai.read",
        asked=6,
        executed=2,
        failed=1,
        denied=1,
        skipped=1,
        unknown=1,
        review_confidence=(0.9 + 0.8 + 0.4) / 3,
        last_used=NOON + timedelta(hours=1),
    )


def test_the_most_selected_tool_comes_first() -> None:
    failed = used("b.often", Status.FAILED)
    records = [turn("p1", used("a.once"), failed, failed), turn("p2", used("c.often"), failed, used("c.often"))]
    records.append(turn("p3", used("c.often")))
    assert [usage.tool for usage in usage_by_tool(records)] == ["c.often", "b.often", "a.once"]
    assert usage_by_tool([turn("p1", used("ai.read"))])[0].review_confidence is None
    assert usage_by_tool([]) == usage_by_tool([turn("p1")]) == []
