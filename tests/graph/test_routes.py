"""Routes read the packet and return the next stage."""

from collections.abc import Callable

import pytest

from packetgate.graph.routes import (
    after_asking,
    after_execution,
    after_injection,
    after_intent,
    after_review,
    after_selection,
)
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import ToolCall, ToolRouting
from packetgate.state.sections import Approval, ApprovalOutcome, Governance, Intent
from packetgate.state.transitions import ToolExecutionStatus

S = ToolExecutionStatus
O = ApprovalOutcome  # noqa: E741


def packet(
    *statuses: ToolExecutionStatus,
    needs_tool: bool = True,
    outcome: str = "call",
    used: int = 0,
    most: int = 3,
    replies: tuple[ApprovalOutcome, ...] = (),
) -> CognitionPacket:
    calls = tuple(ToolCall(tool_name="s.t", params={"n": n}, status=status) for n, status in enumerate(statuses))
    approvals = tuple(
        Approval(call_id=call.call_id, tool_name=call.tool_name, params=call.params, outcome=reply)
        for call, reply in zip(calls, replies, strict=False)
    )
    return CognitionPacket(
        intent=Intent(needs_tool=needs_tool),
        governance=Governance(approvals=approvals),
        tool_routing=ToolRouting(calls=calls, outcome=outcome, reinjection_count=used, max_reinjections=most),  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("route", "given", "goes_to"),
    [
        (after_intent, packet(), "build_palette"),
        (after_intent, packet(needs_tool=False), "respond"),
        (after_intent, packet(used=2), "build_palette"),
        (after_intent, packet(used=3), "respond"),
        (after_intent, packet(used=4), "respond"),
        (after_intent, packet(most=0), "respond"),
        (after_intent, packet(needs_tool=False, used=3), "respond"),
        (after_selection, packet(outcome="call"), "review_selection"),
        (after_selection, packet(outcome="miss"), "build_palette"),
        (after_selection, packet(outcome="describe"), "build_palette"),
        (after_selection, packet(outcome="clarify"), "ask_user"),
        (after_selection, packet(outcome="none"), "respond"),
        (after_review, packet(S.APPROVED), "execute_tool"),
        (after_review, packet(S.AWAITING_CONFIDENCE), "ask_user"),
        (after_review, packet(S.AWAITING_APPROVAL), "ask_user"),
        (after_review, packet(S.APPROVED, S.AWAITING_APPROVAL), "ask_user"),
        (after_review, packet(S.SKIPPED), "respond"),
        (after_review, packet(S.SKIPPED, S.APPROVED), "execute_tool"),
        (after_review, packet(), "respond"),
        (after_asking, packet(S.APPROVED, replies=(O.APPROVED,)), "execute_tool"),
        (after_asking, packet(S.APPROVED, replies=(O.EDITED,)), "execute_tool"),
        (after_asking, packet(S.USER_DENIED, replies=(O.DENIED,)), "respond"),
        (after_asking, packet(S.SKIPPED, replies=(O.SKIPPED,)), "respond"),
        (after_asking, packet(S.SKIPPED, replies=(O.EXPIRED,)), "respond"),
        (after_asking, packet(S.SKIPPED, replies=(O.ANSWERED,), outcome="pending"), "select_tool"),
        (after_asking, packet(S.SKIPPED, S.APPROVED, replies=(O.ANSWERED, O.APPROVED)), "execute_tool"),
        (after_asking, packet(S.USER_DENIED, S.APPROVED, replies=(O.DENIED, O.APPROVED)), "execute_tool"),
        (after_asking, packet(S.UNKNOWN, replies=(O.DENIED,)), "execute_tool"),
        (after_asking, packet(S.EXECUTED, S.UNKNOWN, replies=(O.DENIED,)), "execute_tool"),
        (after_asking, packet(outcome="pending"), "select_tool"),
        (after_asking, packet(outcome="none"), "respond"),
        (after_execution, packet(S.EXECUTED), "inject_result"),
        (after_execution, packet(S.UNKNOWN, S.FAILED), "inject_result"),
        (after_execution, packet(S.EXECUTED, S.AWAITING_APPROVAL), "ask_user"),
        (after_execution, packet(S.EXECUTED, S.APPROVED), "execute_tool"),
        (after_injection, packet(S.EXECUTED), "detect_intent"),
    ],
)
def test_each_route_returns_the_next_stage(
    route: Callable[[CognitionPacket], str], given: CognitionPacket, goes_to: str
):
    before = given.model_dump_json()
    assert (route(given), route(given)) == (goes_to, goes_to)
    assert given.model_dump_json() == before


def test_after_intent_needs_no_routing_for_small_talk():
    assert after_intent(CognitionPacket()) == "respond"


def test_the_answer_of_an_earlier_pass_does_not_count():
    given = packet(S.SKIPPED, replies=(O.ANSWERED,))
    later = given.routing.model_copy(
        update={"past_calls": given.routing.calls, "calls": (ToolCall(tool_name="s.t", status=S.USER_DENIED),)}
    )
    assert after_asking(given.model_copy(update={"tool_routing": later})) == "respond"
