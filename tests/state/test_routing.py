import pytest
from pydantic import ValidationError

from packetgate.state.routing import ToolCall, ToolResult, ToolRouting
from packetgate.state.transitions import ToolExecutionStatus

READ = ToolCall(tool_name="a.read", status=ToolExecutionStatus.EXECUTED, result=ToolResult(success=True, output="text"))
WRITE = ToolCall(tool_name="a.write", params={"x": 1}, status=ToolExecutionStatus.USER_DENIED)


def test_without_calls_the_status_is_that_of_the_pass():
    routing = ToolRouting(pass_status=ToolExecutionStatus.SKIPPED)
    assert routing.selected_tool is None
    assert routing.execution_result is None
    assert routing.execution_status is ToolExecutionStatus.SKIPPED


@pytest.mark.parametrize("calls", [(READ, WRITE), (WRITE, READ)])
def test_computed_fields_are_those_of_the_first_call(calls: tuple[ToolCall, ToolCall]):
    routing = ToolRouting(calls=calls, past_calls=(WRITE,), pass_status=ToolExecutionStatus.SKIPPED)
    assert routing.selected_tool == calls[0].tool_name
    assert routing.execution_status is calls[0].status
    assert routing.execution_result is calls[0].result
    assert routing.all_calls == (WRITE, *calls)


@pytest.mark.parametrize("confidence", [-0.01, 1.01, float("nan"), "sure"])
def test_a_confidence_is_between_0_and_1(confidence: object):
    with pytest.raises(ValidationError, match="review_confidence"):
        ToolCall.model_validate({"tool_name": "a.b", "review_confidence": confidence})
