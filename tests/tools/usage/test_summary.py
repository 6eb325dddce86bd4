"""What the records say of each tool."""

from datetime import timedelta

from support.usage import NOON, turn, used

from packetgate.state.routing import ToolExecutionStatus as Status
from packetgate.tools.usage.record import ToolUsage, by_tool


def test_each_end_is_counted() -> None:
    ends = [Status.EXECUTED, Status.EXECUTED, Status.FAILED, Status.USER_DENIED, Status.SKIPPED, Status.UNKNOWN]
    reviews = [0.9, 0.8, None, 0.4, None, None]
    calls = [used("ai.read", end, review_confidence=review) for end, review in zip(ends, reviews, strict=True)]
    early = turn("p1", *calls[:4]).model_copy(update={"at": NOON})
    late = turn("p2", *calls[4:]).model_copy(update={"at": NOON + timedelta(hours=1)})
    (usage,) = by_tool([late, early])
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


def test_the_most_used_comes_first() -> None:
    failed = used("b.often", Status.FAILED)
    records = [turn("p1", used("a.once"), failed, failed), turn("p2", used("c.often"), failed, used("c.often"))]
    records.append(turn("p3", used("c.often")))
    assert [usage.tool for usage in by_tool(records)] == ["c.often", "b.often", "a.once"]


def test_a_tool_that_nobody_reviewed_has_no_mean() -> None:
    assert by_tool([turn("p1", used("ai.read"))])[0].review_confidence is None


def test_nothing_was_chosen() -> None:
    assert by_tool([]) == by_tool([turn("p1")]) == []
