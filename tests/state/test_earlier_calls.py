"""The calls of earlier turns that a session keeps."""

from collections.abc import Sequence

import pytest

from packetgate.state.routing import ToolCall, ToolResult
from packetgate.state.sections import MAX_EARLIER_CALLS, MAX_EARLIER_CHARS, recent_calls


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
