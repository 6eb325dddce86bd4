"""The failures of calls."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from support.tool_specs import files_catalogue

from packetgate.state import errors
from packetgate.state.base import ErrorType
from packetgate.state.codes import Code
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import Risk, ToolCall, ToolResult
from packetgate.state.sections import Context, PaletteEntry, ServerHealth
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.execution.journal import MemoryJournal
from packetgate.tools.execution.running import execute_calls
from packetgate.tools.servers.results import to_result

FILES = files_catalogue()
READ = ToolCall(
    tool_name="files.read_file", params={"path": "a.txt"}, risk=Risk.READ, status=ToolExecutionStatus.APPROVED
)


@dataclass
class Failing:
    """Tools whose calls all end in the same way."""

    end: Exception | ToolResult
    known: Catalogue = field(default_factory=files_catalogue)

    async def catalogue(self, *, patient: bool = False) -> Catalogue:
        return self.known

    def health(self) -> tuple[ServerHealth, ...]:
        return ()

    async def call(self, tool_name: str, params: dict[str, Any], idempotency_key: str = "") -> ToolResult:
        if isinstance(self.end, Exception):
            raise self.end
        return self.end


@pytest.mark.parametrize(
    ("end", "error_type", "code"),
    [
        (errors.CallRefusedError("there is no such tool"), ErrorType.REFUSED, Code.CALL_REFUSED),
        (errors.ServerError("it is not there"), ErrorType.UNAVAILABLE, Code.SERVER_UNAVAILABLE),
        (errors.SessionRefusedError("unknown session"), ErrorType.UNAVAILABLE, Code.SERVER_SESSION_UNKNOWN),
        (errors.LostCallError("it went away"), ErrorType.NO_ANSWER, Code.NO_ANSWER),
        (errors.TimedOutCallError("it took too long"), ErrorType.TIMEOUT, Code.CALL_TIMED_OUT),
        (to_result("no such file", None, 1.0, is_error=True), ErrorType.TOOL_ERROR, Code.TOOL_FAILED),
        (ZeroDivisionError("a mistake of ours"), ErrorType.INTERNAL, Code.INTERNAL),
        (to_result("the text", None, 1.0), None, None),
    ],
    ids=lambda given: type(given).__name__,
)
async def test_a_failure_has_a_type_and_a_code(
    end: Exception | ToolResult, error_type: ErrorType | None, code: Code | None
):
    palette = (PaletteEntry(tool_name=READ.tool_name, detail="full", reason="ranked", risk=Risk.READ),)
    packet = CognitionPacket(context=Context(palette=palette))
    (ended,) = await execute_calls([READ], packet, FILES, Failing(end), MemoryJournal())
    assert ended.result
    assert (ended.result.error_type, ended.result.code) == (error_type, code)
    assert ended.status is (ToolExecutionStatus.FAILED if code else ToolExecutionStatus.EXECUTED)


async def test_a_call_off_the_palette_is_refused():
    (ended,) = await execute_calls([READ], CognitionPacket(), FILES, Failing(ZeroDivisionError()), MemoryJournal())
    assert ended.result
    assert (ended.result.error_type, ended.result.code) == (ErrorType.REFUSED, Code.TOOL_NOT_OFFERED)
