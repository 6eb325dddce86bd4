import pytest
from pydantic import ValidationError

from packetgate.state.routing import Risk, ToolCall, ToolResult, ToolRouting
from packetgate.state.transitions import ToolExecutionStatus

READ = ToolCall(tool_name="a.read", status=ToolExecutionStatus.EXECUTED, result=ToolResult(success=True, output="text"))
WRITE = ToolCall(tool_name="a.write", params={"x": 1}, status=ToolExecutionStatus.USER_DENIED)


def test_without_calls_the_pass_itself_has_the_status():
    routing = ToolRouting(pass_status=ToolExecutionStatus.SKIPPED)
    assert routing.selected_tool is None
    assert routing.execution_result is None
    assert routing.execution_status is ToolExecutionStatus.SKIPPED


@pytest.mark.parametrize("calls", [(READ, WRITE), (WRITE, READ)])
def test_the_first_call_is_read(calls: tuple[ToolCall, ToolCall]):
    routing = ToolRouting(calls=calls, past_calls=(WRITE,), pass_status=ToolExecutionStatus.SKIPPED)
    assert routing.selected_tool == calls[0].tool_name
    assert routing.execution_status is calls[0].status
    assert routing.execution_result is calls[0].result
    assert routing.all_calls == (WRITE, *calls)


def test_the_same_call_is_the_same_tool_with_the_same_arguments():
    assert WRITE.same_call(ToolCall(tool_name="a.write", params={"x": 1}))
    assert not WRITE.same_call(ToolCall(tool_name="a.write", params={"x": 2}))
    assert not WRITE.same_call(ToolCall(tool_name="a.read", params={"x": 1}))


@pytest.mark.parametrize(("count", "capped"), [(0, False), (2, False), (3, True), (4, True)])
def test_the_cap(count: int, capped: bool):
    assert ToolRouting(reinjection_count=count).capped is capped


def test_only_a_waiting_call_awaits_the_user():
    assert {status for status in ToolExecutionStatus if status.awaits_user} == {
        ToolExecutionStatus.AWAITING_CONFIDENCE,
        ToolExecutionStatus.AWAITING_APPROVAL,
    }


def test_risks_are_ordered():
    assert sorted(Risk, key=lambda risk: risk.severity) == [Risk.READ, Risk.WRITE, Risk.EXECUTE]


@pytest.mark.parametrize("confidence", [-0.01, 1.01, float("nan"), "sure"])
def test_a_confidence_is_between_0_and_1(confidence: object):
    with pytest.raises(ValidationError, match="review_confidence"):
        ToolCall.model_validate({"tool_name": "a.b", "review_confidence": confidence})
