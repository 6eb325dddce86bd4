"""The state machines of a call and a pass: the diagram in CONTRIBUTING.md, and each transition."""

from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from typing import get_args

import pytest

from packetgate.state.base import now
from packetgate.state.errors import PacketError
from packetgate.state.routing import ToolCall, ToolResult, ToolRouting
from packetgate.state.transitions import OUTCOMES, STATUSES, Outcome, ToolExecutionStatus

S = ToolExecutionStatus
GUIDE = Path(__file__).parents[2] / "CONTRIBUTING.md"

MOVES: dict[str, Callable[[ToolCall, S], ToolCall]] = {
    "changed": lambda call, status: call.changed(status=status),
    "decided": lambda call, status: call.with_decision(status),
    "ended": lambda call, status: call.with_result(status, ToolResult(success=True)),
}
"""Example events that change the status of a call."""

SELECTIONS: dict[Outcome, Callable[[ToolRouting], ToolRouting]] = {
    "pending": lambda routing: routing.after_answer(),
    "call": lambda routing: routing.with_calls((ToolCall(tool_name="a.b"),), 4),
    "none": lambda routing: routing.ended_without_call("no"),
    "clarify": lambda routing: routing.with_question("Which?"),
    "describe": lambda routing: routing.with_described_tools(("a.b",)),
    "miss": lambda routing: routing.after_miss(("a.c",)),
}
"""Example events that change the outcome of a pass."""


def drawn(table: Mapping[str, frozenset[str]]) -> str:
    """Return a table as a Mermaid diagram."""
    lines = [f"    {before} --> {after}" for before, follow in table.items() for after in sorted(follow)]
    ends = [f"    {before} --> [*]" for before, follow in table.items() if not follow]
    return "\n".join(["stateDiagram-v2", f"    [*] --> {next(iter(table))}", *lines, *ends])


@pytest.mark.parametrize("table", [STATUSES, OUTCOMES], ids=["statuses", "outcomes"])
def test_contributing_md_shows_the_diagram(table: Mapping[str, frozenset[str]]):
    assert f"```mermaid\n{drawn(table)}\n```" in GUIDE.read_text()


@pytest.mark.parametrize(
    ("table", "every"), [(STATUSES, set(S)), (OUTCOMES, set(get_args(Outcome)))], ids=["statuses", "outcomes"]
)
def test_every_state_can_be_reached(table: Mapping[str, frozenset[str]], every: set[str]):
    reached, new = set(), {"pending"}
    while new:
        reached |= new
        new = {after for before in new for after in table[before]} - reached
    assert reached == set(table) == every


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize(("before", "after"), [*product(S, S)])
def test_a_call_changes_status_only_as_the_table_allows(move: str, before: S, after: S):
    call = ToolCall(tool_name="a.b", status=before)
    if after is before or after in STATUSES[before]:
        assert MOVES[move](call, after).status is after
    else:
        with pytest.raises(PacketError, match=rf"the call of a\.b is {before}: it cannot become {after}"):
            MOVES[move](call, after)


@pytest.mark.parametrize("decision", [S.USER_DENIED, S.SKIPPED])
@pytest.mark.parametrize("waits", [status for status in S if status.awaits_user])
def test_a_call_that_may_have_run_becomes_unknown_if_it_is_not_run_again(waits: S, decision: S):
    call = ToolCall(tool_name="a.b", status=waits, started_at=now())
    assert call.with_decision(decision).status is S.UNKNOWN


@pytest.mark.parametrize(("before", "after"), [*product(OUTCOMES, OUTCOMES)])
def test_a_pass_changes_outcome_only_as_the_table_allows(before: Outcome, after: Outcome):
    routing = ToolRouting(outcome=before)
    if after in OUTCOMES[before]:
        assert SELECTIONS[after](routing).outcome == after
    else:
        with pytest.raises(PacketError, match=f"the outcome of this pass is '{before}'"):
            SELECTIONS[after](routing)
