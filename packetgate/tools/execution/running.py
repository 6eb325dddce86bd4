"""Running one call, and what it ends as."""

import asyncio
import logging
from collections.abc import Sequence
from traceback import format_exception
from typing import Any

from packetgate.state.base import ErrorType
from packetgate.state.errors import ConfigError, LostCallError, ToolCallError
from packetgate.state.packet import CognitionPacket
from packetgate.state.redaction import redacted
from packetgate.state.routing import Risk, ToolCall, ToolResult
from packetgate.state.sections import AuditEntry
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.toolbox import Toolbox
from packetgate.tools.execution.call_log import CallLog
from packetgate.tools.execution.grants import Grants
from packetgate.tools.execution.journal import Journal
from packetgate.tools.execution.permission import examined
from packetgate.tools.risk.vouching import way_to_vouch
from packetgate.tools.spec.descriptions import with_key
from packetgate.tools.text.result_store import session_results

logger = logging.getLogger(__name__)

PATIENCE_S = 3.0
"""Longest that a question waits for a dry run."""


async def execute_all(
    calls: Sequence[ToolCall], packet: CognitionPacket, catalogue: Catalogue, toolbox: Toolbox, journal: Journal
) -> list[ToolCall]:
    """Run calls at the same time. One that breaks in a way nobody foresaw ends itself and not the others.

    Raises:
        ConfigError: the journal cannot be used; once it can, it knows what was run.
    """
    runs = [execute(call, packet, catalogue, toolbox, journal) for call in calls]
    ended = await asyncio.gather(*runs, return_exceptions=True)
    for error in ended:
        if isinstance(error, ConfigError):
            raise error
    return [
        _broken(call, end) if isinstance(end, BaseException) else end for call, end in zip(calls, ended, strict=True)
    ]


async def execute(
    call: ToolCall, packet: CognitionPacket, catalogue: Catalogue, toolbox: Toolbox, journal: Journal
) -> ToolCall:
    """Return the call with its result and final status.

    A write or a command that is switched off is not run: where a trusted server offers it, the tool is asked what it
    would do. One that was sent and never answered is `unknown`, because it may have happened. One that the journal
    knows to have ended is not run again, whatever process or history asks for it: it ends as it did. One that was
    started, and whose end nobody told, runs again if it surely only reads, and waits for the user's word if not.
    """
    found = await asyncio.to_thread(examined, call, packet, catalogue)
    call, approval = found.call, found.approval
    if found.refusal:
        return call.ended(ToolExecutionStatus.FAILED, _unsent(found.refusal))
    spec = catalogue[call.tool_name]
    switched_on = packet.governance.settings.allows(call.risk)
    if not switched_on and not spec.has_dry_run:
        nothing = _unvouched(call) or f"it was not called, because {call.risk} tools are switched off"
        untold = ToolResult(success=True, output=nothing, dry_run=True, said="")
        return call.ended(ToolExecutionStatus.SKIPPED, untold)
    if not switched_on:
        return await _sent(call, {**call.params, "dry_run": True}, toolbox, packet.header.session_id, dry_run=True)
    unread = CallLog(call, packet, spec, approval.question_id if approval else "", journal)
    return await _once(unread, toolbox, packet.header.session_id, approval.grant_id if approval else "")


async def _once(unread: CallLog, toolbox: Toolbox, session: str, grant_id: str) -> ToolCall:
    """Run a call that may run, unless the journal says that it was run, or may have been."""
    call, spec = unread.call, unread.spec
    while True:
        log = await unread.read()
        if log.end is not None:
            return log.end
        if log.unfinished is not None and call.risk is not Risk.READ and call.started_at != log.unfinished:
            return call.in_doubt(log.unfinished)
        if grant_id and not await Grants(log.journal).use(grant_id, call, log.packet):
            error = "the remembered approval was taken back, is used up or has lapsed; ask for it anew"
            return call.ended(ToolExecutionStatus.FAILED, _unsent(error))
        if await log.start():
            break
    params = with_key(call.params, spec.parameters, log.idempotency_key)
    if spec.has_dry_run:
        params["dry_run"] = False
    end = await _sent(call, params, toolbox, session, idempotency_key=log.idempotency_key)
    try:
        await log.finish(end)
    except ConfigError as error:  # the packet may still be kept, and tell what is known here
        logger.warning("the end of call %s of %s is not in the journal: %s", call.call_id, call.tool_name, error)
    return end


async def _sent(
    call: ToolCall,
    params: dict[str, Any],
    toolbox: Toolbox,
    session: str,
    *,
    dry_run: bool = False,
    idempotency_key: str = "",
) -> ToolCall:
    try:
        with session_results(session):
            result = await toolbox.call(call.tool_name, params, idempotency_key)
    except LostCallError as error:
        certain = dry_run or call.risk is Risk.READ
        status = ToolExecutionStatus.FAILED if certain else ToolExecutionStatus.UNKNOWN
        return call.ended(status, _unsent(str(error), error.said, error.error_type))
    except ToolCallError as error:
        return call.ended(ToolExecutionStatus.FAILED, _unsent(str(error), error.said, error.error_type))
    if not result.success:
        return call.ended(ToolExecutionStatus.FAILED, result)
    if dry_run:
        return call.ended(ToolExecutionStatus.SKIPPED, result.changed(dry_run=True))
    return call.ended(ToolExecutionStatus.EXECUTED, result)


async def rehearse(
    calls: Sequence[ToolCall], packet: CognitionPacket, catalogue: Catalogue, toolbox: Toolbox, journal: Journal
) -> tuple[CognitionPacket, dict[str, ToolCall]]:
    """Run the calls that wait for the user as dry runs, where their tools have one, for at most `PATIENCE_S`.

    Returns the packet with audit entries, and the ended dry runs by call id.
    """
    waiting = [call for call in calls if call.status.awaits_user and _has_dry_run(call, catalogue)]
    if not waiting:
        return packet, {}
    dry = packet.merged({"governance": packet.governance.rehearsing()})
    ends: dict[str, ToolCall] = {}

    async def rehearsed(call: ToolCall) -> None:
        (ends[call.call_id],) = await execute_all([call], dry, catalogue, toolbox, journal)

    try:
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(*(rehearsed(call) for call in waiting))
    except TimeoutError:
        pass  # the others are reported as timed out
    trail = (
        AuditEntry(event=_rehearsal_event(ends.get(call.call_id)), detail=call.tool_name, call_id=call.call_id)
        for call in waiting
    )
    return packet.merged({"governance": packet.governance.audited(*trail)}), ends


def _rehearsal_event(dry_run: ToolCall | None) -> str:
    if dry_run is None:
        return "dry_run_timed_out"
    return "dry_run_failed" if dry_run.status is ToolExecutionStatus.FAILED else "dry_run_passed"


def _has_dry_run(call: ToolCall, catalogue: Catalogue) -> bool:
    spec = catalogue.get(call.tool_name)
    return spec is not None and spec.has_dry_run and call.risk is not Risk.READ  # a dry run of a read would run it


def _broken(call: ToolCall, error: BaseException) -> ToolCall:
    if not isinstance(error, Exception):
        raise error
    broke = redacted("".join(format_exception(error)))
    logger.error("call %s of %s broke: %s", call.call_id, call.tool_name, broke)
    status = ToolExecutionStatus.FAILED if call.risk is Risk.READ else ToolExecutionStatus.UNKNOWN
    why = redacted(f"the call broke: {type(error).__name__}: {error}")
    return call.ended(status, ToolResult(success=False, error=why, error_type=ErrorType.INTERNAL))


def _unvouched(call: ToolCall) -> str:
    """Return why a call that looks like a read was not made, and what can be done about that; empty for any other."""
    if not call.unvouched:
        return ""
    why = f"it was not called: it looks like a read and counts as {call.risk}, which is switched off, because "
    return f"{why}{'; '.join(call.risk_why)}. {way_to_vouch(call)}".rstrip()


def _unsent(why: str, said: str = "", error_type: ErrorType = ErrorType.REFUSED) -> ToolResult:
    """Return the result of a call to which no tool has answered, in our own words but for what is `said`."""
    return ToolResult(success=False, error=why, error_type=error_type, said=said)


def result_text(call: ToolCall) -> str:
    """Return what a call returned, or that it has no result, and why."""
    if call.result is not None and call.status is ToolExecutionStatus.EXECUTED:
        return call.result.output
    if call.result is not None and call.result.dry_run:
        return f"{call.tool_name} was NOT run (dry run only): {call.result.output}"
    error = call.result.error if call.result and call.result.error else call.review_reasoning
    return f"{call.tool_name} has no result: it is {call.status.replace('_', ' ')}. {error}".strip()
