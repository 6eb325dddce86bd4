"""The computed fields of the routing, and the calls of earlier turns that a session keeps."""

from collections.abc import Sequence

import pytest
from pydantic import ValidationError

from packetgate.state.routing import ToolCall, ToolResult, ToolRouting
from packetgate.state.sections import MAX_EARLIER_CALLS, MAX_EARLIER_CHARS, recent_calls
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


def _read(size: int) -> ToolCall:
    result = ToolResult(success=True, output="x" * size, parts=({"type": "text"},), meta={"a": 1})
    return ToolCall(tool_name="files.read_file", result=result)


@pytest.mark.parametrize(
    ("sizes", "kept"),
    [
        ((), ()),
        ((1,), (1,)),
        ((MAX_EARLIER_CHARS * 2,), (MAX_EARLIER_CHARS * 2,)),
        ((MAX_EARLIER_CHARS, 1), (1,)),
        ((5, MAX_EARLIER_CHARS * 2), (MAX_EARLIER_CHARS * 2,)),
        (range(10, 13 + MAX_EARLIER_CALLS), range(13, 13 + MAX_EARLIER_CALLS)),
    ],
)
def test_the_newest_calls_are_kept(sizes: Sequence[int], kept: Sequence[int]):
    calls = recent_calls(map(_read, sizes))
    assert [len(call.result.server_text) for call in calls if call.result] == [*kept]
    assert all(call.result and not call.result.parts and call.result.meta is None for call in calls)
