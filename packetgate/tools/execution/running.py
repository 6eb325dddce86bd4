"""Run calls and dry runs, and return them with their results."""

import asyncio
import logging
from collections.abc import Sequence
from traceback import format_exception
from typing import Any

from packetgate.state.base import ErrorType
from packetgate.state.codes import Code
from packetgate.state.errors import CallRefusedError, ConfigError, LostCallError, ToolCallError
from packetgate.state.packet import CognitionPacket
from packetgate.state.redaction import redacted
from packetgate.state.routing import Risk, ToolCall, ToolResult
from packetgate.state.sections import AuditEntry
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.toolbox import Toolbox
from packetgate.tools.execution.grants import Grants
from packetgate.tools.execution.journal import CallLog, Journal
from packetgate.tools.execution.permission import check_permission, may_run
from packetgate.tools.risk.tool import confirm_read_hint
from packetgate.tools.spec.descriptions import with_idempotency_key
from packetgate.tools.text.result_store import session_results

_logger = logging.getLogger(__name__)

_DRY_RUN_TIMEOUT_S = 3.0
"""Longest time, in seconds, that a question waits for dry runs."""


async def execute_calls(
    calls: Sequence[ToolCall], packet: CognitionPacket, catalogue: Catalogue, toolbox: Toolbox, journal: Journal
) -> list[ToolCall]:
    """Run calls concurrently. An unexpected exception ends only its own call.

    Raises:
        ConfigError: the journal cannot be used.
    """
    runs = [_execute(call, packet, catalogue, toolbox, journal) for call in calls]
    ends = await asyncio.gather(*runs, return_exceptions=True)
    for error in ends:
        if isinstance(error, ConfigError):
            raise error
    return [
        _failed_call(call, end) if isinstance(end, BaseException) else end
        for call, end in zip(calls, ends, strict=True)
    ]


async def run_dry_runs(
    calls: Sequence[ToolCall], packet: CognitionPacket, catalogue: Catalogue, toolbox: Toolbox, journal: Journal
) -> tuple[CognitionPacket, dict[str, ToolCall]]:
    """Run the calls that wait for the user as dry runs, if their tools support that, for at most `_DRY_RUN_TIMEOUT_S`.

    Returns the packet with audit entries, and the ended dry runs by call id.
    """
    waiting = [call for call in calls if call.status.awaits_user and _has_dry_run(call, catalogue)]
    if not waiting:
        return packet, {}
    dry = packet.with_update({"governance": packet.governance.as_dry_run()})
    ends: dict[str, ToolCall] = {}

    async def run_dry(call: ToolCall) -> None:
        (ends[call.call_id],) = await execute_calls([call], dry, catalogue, toolbox, journal)

    try:
        async with asyncio.timeout(_DRY_RUN_TIMEOUT_S):
            await asyncio.gather(*(run_dry(call) for call in waiting))
    except TimeoutError:
        pass  # dry runs without an end are reported as timed out
    entries = (
        AuditEntry(event=_dry_run_event(ends.get(call.call_id)), detail=call.tool_name, call_id=call.call_id)
        for call in waiting
    )
    return packet.with_update({"governance": packet.governance.with_audit_entries(*entries)}), ends


def result_text(call: ToolCall) -> str:
    """Return the output of a call, or the reason why the call has none."""
    if call.result is not None and call.status is ToolExecutionStatus.EXECUTED:
        return call.result.output
    if call.result is not None and call.result.dry_run:
        return f"{call.tool_name} was NOT run (dry run only): {call.result.output}"
    error = call.result.error if call.result and call.result.error else call.review_reasoning
    return f"{call.tool_name} has no result: it is {call.status.replace('_', ' ')}. {error}".strip()


async def _execute(
    call: ToolCall, packet: CognitionPacket, catalogue: Catalogue, toolbox: Toolbox, journal: Journal
) -> ToolCall:
    try:
        call, approval = await asyncio.to_thread(check_permission, call, packet, catalogue)
        spec = catalogue[call.tool_name]
        if may_run(call, packet, approval):
            log = CallLog(call, packet, spec, approval.question_id if approval else "", journal)
            return await _run_once(log, toolbox, approval.grant_id if approval else "")
        if spec.has_dry_run:
            return await _send_call(
                call, {**call.params, "dry_run": True}, toolbox, packet.header.session_id, dry_run=True
            )
    except CallRefusedError as error:
        return call.with_result(ToolExecutionStatus.FAILED, _failed_result(error))
    output = _why_read_is_off(call) or f"it was not called, because {call.risk} tools are switched off"
    return call.with_result(
        ToolExecutionStatus.SKIPPED, ToolResult(success=True, output=output, dry_run=True, server_part="")
    )


async def _run_once(log: CallLog, toolbox: Toolbox, grant_id: str) -> ToolCall:
    """Run a call once, and return it with its result.

    The call does not run if the journal has its end, or the start of a write whose end is unknown.
    """
    call, spec = log.call, log.spec
    while True:
        log = await log.read()
        if log.end is not None:
            return log.end
        if log.unfinished_start is not None and call.risk is not Risk.READ and call.started_at != log.unfinished_start:
            return call.with_unfinished_run(log.unfinished_start)
        if grant_id and not await Grants(log.journal).use(grant_id, call, log.packet):
            message = "the remembered approval was revoked, is used up or has expired: approve the call again"
            raise CallRefusedError(message, code=Code.GRANT_OVER)
        if await log.start():
            break
    params = with_idempotency_key(call.params, spec.parameters, log.idempotency_key)
    if spec.has_dry_run:
        params["dry_run"] = False
    end = await _send_call(call, params, toolbox, log.packet.header.session_id, idempotency_key=log.idempotency_key)
    try:
        await log.finish(end)
    except ConfigError as error:  # the packet may still be stored
        _logger.warning("the end of call %s of %s is not in the journal: %s", call.call_id, call.tool_name, error)
    return end


async def _send_call(
    call: ToolCall,
    params: dict[str, Any],
    toolbox: Toolbox,
    session: str,
    *,
    dry_run: bool = False,
    idempotency_key: str = "",
) -> ToolCall:
    try:
        with session_results(session, call.call_id):
            result = await toolbox.call(call.tool_name, params, idempotency_key)
    except ToolCallError as error:
        may_have_changed = isinstance(error, LostCallError) and not dry_run and call.risk is not Risk.READ
        status = ToolExecutionStatus.UNKNOWN if may_have_changed else ToolExecutionStatus.FAILED
        return call.with_result(status, _failed_result(error))
    if not result.success:
        return call.with_result(ToolExecutionStatus.FAILED, result)
    if dry_run:
        return call.with_result(ToolExecutionStatus.SKIPPED, result.changed(dry_run=True))
    return call.with_result(ToolExecutionStatus.EXECUTED, result)


def _dry_run_event(dry_run: ToolCall | None) -> str:
    if dry_run is None:
        return "dry_run_timed_out"
    return "dry_run_failed" if dry_run.status is ToolExecutionStatus.FAILED else "dry_run_passed"


def _has_dry_run(call: ToolCall, catalogue: Catalogue) -> bool:
    spec = catalogue.get(call.tool_name)
    return spec is not None and spec.has_dry_run and call.risk is not Risk.READ  # a dry run of a read would run it


def _failed_call(call: ToolCall, error: BaseException) -> ToolCall:
    if not isinstance(error, Exception):
        raise error
    _logger.error("call %s of %s failed: %s", call.call_id, call.tool_name, redacted("".join(format_exception(error))))
    status = ToolExecutionStatus.FAILED if call.risk is Risk.READ else ToolExecutionStatus.UNKNOWN
    why = redacted(f"the call failed: {type(error).__name__}: {error}")
    return call.with_result(
        status, ToolResult(success=False, error=why, error_type=ErrorType.INTERNAL, code=Code.INTERNAL)
    )


def _failed_result(error: ToolCallError) -> ToolResult:
    return ToolResult(
        success=False, error=str(error), error_type=error.error_type, code=error.code, server_part=error.server_part
    )


def _why_read_is_off(call: ToolCall) -> str:
    if not call.is_unconfirmed_read:
        return ""
    why = f"it was not called: it looks like a read and counts as {call.risk}, which is switched off, because "
    return f"{why}{'; '.join(call.risk_reasons)}. {confirm_read_hint(call)}".rstrip()
