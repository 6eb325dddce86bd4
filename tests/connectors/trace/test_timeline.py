"""When stages ran, and where they are drawn."""

from datetime import UTC, datetime, timedelta

import pytest

from packetgate.connectors.trace.page import BREAKS, by_visit, chart, visits
from packetgate.graph.records.prompts import StagePrompts
from packetgate.state.sections import Reflection

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def entry(step: str, ended_ms: float, took_ms: float) -> Reflection:
    return Reflection(step=step, summary=step, at=NOON + timedelta(milliseconds=ended_ms), latency_ms=took_ms)


def heard(stage: str, at_ms: float) -> StagePrompts:
    at = NOON + timedelta(milliseconds=at_ms)
    return StagePrompts(session_id="s", packet_id="p", stage=stage, role="lite", at=at, exchanges=())


LOG = (
    entry("open_packet", 10, 10),
    entry("select_tool", 40, 20),
    entry("select_tool", 40, 0),
    entry("ask_user", 10_040, 30),
    entry("select_tool", 10_060, 20),
)


def test_a_stage_began_as_long_before_its_entry_as_it_took() -> None:
    found = visits(LOG)
    assert [(one.stage, len(one.entries)) for one in found] == [
        ("open_packet", 1),
        ("select_tool", 2),
        ("ask_user", 1),
        ("select_tool", 1),
    ]
    assert [one.ms_after(found[0]) for one in found] == [0, 20, 10_010, 10_040]
    assert [one.paused_ms for one in found] == [0, 10, 9_970, 0]


def test_a_stage_begins_no_earlier_than_the_one_before_ends() -> None:
    first, second = visits((entry("a", 10, 10), entry("b", 15, 10)))
    assert second.began == first.ended


def test_a_long_pause_is_drawn_short_and_the_rest_to_scale() -> None:
    drawn = chart(visits(LOG))
    (pause,) = drawn.breaks
    assert (drawn.worked_ms, drawn.paused_ms, pause.width) == (80, 9_980, 5)
    per_ms = (100 - 5) / 90
    assert [bar.width for bar in drawn.bars] == pytest.approx([10 * per_ms, 20 * per_ms, 30 * per_ms, 20 * per_ms])
    assert [bar.left for bar in drawn.bars] == pytest.approx([0, 20 * per_ms, 40 * per_ms + 5, 70 * per_ms + 5])
    assert drawn.bars[-1].left + drawn.bars[-1].width == pytest.approx(100)


def test_many_pauses_leave_room_for_the_stages() -> None:
    drawn = chart(visits(tuple(entry("ask_user", number * 60_000, 5) for number in range(1, 40))))
    assert sum(one.width for one in drawn.breaks) == pytest.approx(BREAKS)
    assert sum(one.width for one in drawn.bars) == pytest.approx(100 - BREAKS)


def test_stages_that_took_no_time_are_drawn_all_the_same() -> None:
    assert [bar.left for bar in chart(visits((entry("a", 0, 0), entry("b", 0, 0)))).bars] == [0, 0]


def test_what_was_said_belongs_to_the_visit_in_which_it_was() -> None:
    early, late, lost = heard("select_tool", 25), heard("select_tool", 10_045), heard("respond", 10_070)
    assert by_visit((early, late, lost), visits(LOG)) == [[], [early], [], [late], [lost]]
