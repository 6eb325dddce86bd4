"""What became of a call, in so many words, so that no result can be made up for one that has none."""

from packetgate.state.routing import ToolCall
from packetgate.state.transitions import ToolExecutionStatus


def result_text(call: ToolCall) -> str:
    """Return what a call returned, or that it has no result, and why."""
    if call.result is not None and call.status is ToolExecutionStatus.EXECUTED:
        return call.result.output
    if call.result is not None and call.result.dry_run:
        return f"{call.tool_name} was NOT run (dry run only): {call.result.output}"
    error = call.result.error if call.result and call.result.error else call.review_reasoning
    return f"{call.tool_name} has no result: it is {call.status.replace('_', ' ')}. {error}".strip()
