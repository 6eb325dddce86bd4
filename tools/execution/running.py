"""Running one call, and what it ends as."""

import asyncio
import logging
from collections.abc import Sequence

from state.errors import LostCallError, ToolCallError
from state.packet import CognitionPacket
from state.routing import Risk, ToolCall, ToolResult
from state.sections import AuditEntry
from state.transitions import ToolExecutionStatus
from tools.catalogue.catalogue import Catalogue
from tools.catalogue.toolbox import Toolbox
from tools.execution.journal import Journal
from tools.execution.permission import grant_for, needs_approval, refusal
from tools.risk.call import rated

log = logging.getLogger(__name__)

PATIENCE_S = 3.0
"""Longest that a question waits for a dry run."""


async def execute_all(
    calls: Sequence[ToolCall], packet: CognitionPacket, catalogue: Catalogue, toolbox: Toolbox, journal: Journal
) -> list[ToolCall]:
    """Run calls at the same time. One that breaks in a way nobody foresaw ends itself and not the others."""
    runs = [execute(call, packet, catalogue, toolbox, journal) for call in calls]
    ended = await asyncio.gather(*runs, return_exceptions=True)
    return [
        _broken(call, end) if isinstance(end, BaseException) else end for call, end in zip(calls, ended, strict=True)
    ]


async def execute(
    call: ToolCall, packet: CognitionPacket, catalogue: Catalogue, toolbox: Toolbox, journal: Journal
) -> ToolCall:
    """Return the call with its result and final status.

    A write or a command that is switched off is not run: where a trusted server offers it, the tool is asked what it
    would do. One that was sent and never answered is `unknown`, because it may have happened; and so is one whose
    approval was used before, by a process that ended in the middle, or in a history that is replayed.
    """
    why_not = await asyncio.to_thread(refusal, call, packet, catalogue)
    if why_not:
        return _ended(call, ToolExecutionStatus.FAILED, ToolResult(success=False, error=why_not))
    spec = catalogue[call.tool_name]
    call = await asyncio.to_thread(rated, call, spec)
    switched_on = packet.governance.settings.allows(call.risk)
    if not switched_on and not spec.has_dry_run:
        nothing = f"it was not called, because {call.risk} tools are switched off"
        return _ended(call, ToolExecutionStatus.SKIPPED, ToolResult(success=True, output=nothing, dry_run=True))
    if needs_approval(call, call.risk, packet.governance.settings):
        grant = grant_for(call, packet, spec)
        if grant is None:  # it has lapsed since it was looked at
            error = "its approval has lapsed, so it was not run; ask for it anew"
            return _ended(call, ToolExecutionStatus.FAILED, ToolResult(success=False, error=error))
        if not await journal.claim(f"{grant.question_id}:{call.call_id}"):
            error = "its approval was used before, so it is not run again; ask for it anew if it is to be"
            return _ended(call, ToolExecutionStatus.UNKNOWN, ToolResult(success=False, error=error))
    params = {**call.params, "dry_run": not switched_on} if spec.has_dry_run else dict(call.params)
    try:
        result = await toolbox.call(call.tool_name, params)
    except LostCallError as error:
        doubt = switched_on and call.risk is not Risk.READ
        status = ToolExecutionStatus.UNKNOWN if doubt else ToolExecutionStatus.FAILED
        return _ended(call, status, ToolResult(success=False, error=str(error)))
    except ToolCallError as error:
        return _ended(call, ToolExecutionStatus.FAILED, ToolResult(success=False, error=str(error)))
    if not result.success:
        return _ended(call, ToolExecutionStatus.FAILED, result)
    if not switched_on:
        return _ended(call, ToolExecutionStatus.SKIPPED, result.as_dry_run())
    return _ended(call, ToolExecutionStatus.EXECUTED, result)


async def rehearse(
    calls: Sequence[ToolCall], packet: CognitionPacket, catalogue: Catalogue, toolbox: Toolbox, journal: Journal
) -> tuple[CognitionPacket, tuple[ToolCall, ...]]:
    """Try in a dry run the calls that wait for the user: one that can only fail has failed, and is not asked about.

    They are executed like any other call, with everything above read switched off; the packet that is returned has
    them in its trail. A dry run that takes longer than `PATIENCE_S` says nothing of the call in earnest.
    """
    dry = packet.merged({"governance": packet.governance.rehearsing()})
    ends: dict[str, ToolCall] = {}

    async def rehearsed(call: ToolCall) -> None:
        (ends[call.call_id],) = await execute_all([call], dry, catalogue, toolbox, journal)

    waiting = [call for call in calls if call.status.awaits_user and _has_dry_run(call, catalogue)]
    try:
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(*(rehearsed(call) for call in waiting))
    except TimeoutError:
        pass  # those that came in time are known
    failed = {name: end for name, end in ends.items() if end.status is ToolExecutionStatus.FAILED}
    trail = (
        AuditEntry(
            event=f"dry_run_{'failed' if name in failed else 'passed' if name in ends else 'timed_out'}",
            detail=call.tool_name,
            call_id=name,
        )
        for call in waiting
        for name in [call.call_id]
    )
    kept = tuple(failed.get(call.call_id, call) for call in calls)
    return packet.merged({"governance": packet.governance.audited(*trail)}), kept


def _has_dry_run(call: ToolCall, catalogue: Catalogue) -> bool:
    """Whether a call can be tried without effect; a read would not be switched off, but done."""
    spec = catalogue.get(call.tool_name)
    return spec is not None and spec.has_dry_run and call.risk is not Risk.READ


def _broken(call: ToolCall, error: BaseException) -> ToolCall:
    if not isinstance(error, Exception):
        raise error
    log.error("call %s of %s broke", call.call_id, call.tool_name, exc_info=error)
    status = ToolExecutionStatus.FAILED if call.risk is Risk.READ else ToolExecutionStatus.UNKNOWN
    return _ended(call, status, ToolResult(success=False, error=f"the call broke: {type(error).__name__}: {error}"))


def _ended(call: ToolCall, status: ToolExecutionStatus, result: ToolResult) -> ToolCall:
    return call.ended(status, result)
