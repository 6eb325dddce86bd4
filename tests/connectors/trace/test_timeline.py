"""When stages ran, and where they are drawn."""

from datetime import UTC, datetime, timedelta

import pytest

from packetgate.connectors.trace.page import bars, by_visit, visits
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


def test_bars_follow_one_another_to_scale() -> None:
    drawn = bars(visits(LOG))
    assert [one.width for one in drawn] == pytest.approx([12.5, 25, 37.5, 25])
    assert [one.left for one in drawn] == pytest.approx([0, 12.5, 37.5, 75])
    assert [one.left for one in bars(visits((entry("a", 0, 0), entry("b", 0, 0))))] == [0, 0]


def test_what_was_said_belongs_to_the_visit_in_which_it_was() -> None:
    early, late, lost = heard("select_tool", 25), heard("select_tool", 10_045), heard("respond", 10_070)
    assert by_visit((early, late, lost), visits(LOG)) == [[], [early], [], [late], [lost]]
