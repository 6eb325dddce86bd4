"""Running one call, and what it ends as."""

import asyncio
import logging
from collections.abc import Sequence

from state.errors import LostCallError, ToolCallError
from state.packet import CognitionPacket
from state.routing import Risk, ToolCall, ToolResult
from state.transitions import ToolExecutionStatus
from tools.catalogue.catalogue import Catalogue
from tools.catalogue.toolbox import Toolbox
from tools.execution.claims import Claim
from tools.execution.permission import grant_for, refusal

log = logging.getLogger(__name__)

PATIENCE_S = 3.0
"""Longest that a question waits for a dry run."""


async def execute_all(
    calls: Sequence[ToolCall], packet: CognitionPacket, catalogue: Catalogue, toolbox: Toolbox, claim: Claim
) -> list[ToolCall]:
    """Run calls at the same time. One that breaks in a way nobody foresaw ends itself and not the others."""
    runs = [execute(call, packet, catalogue, toolbox, claim) for call in calls]
    ended = await asyncio.gather(*runs, return_exceptions=True)
    return [
        _broken(call, end) if isinstance(end, BaseException) else end for call, end in zip(calls, ended, strict=True)
    ]


async def execute(
    call: ToolCall, packet: CognitionPacket, catalogue: Catalogue, toolbox: Toolbox, claim: Claim
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
    switched_on = packet.governance.settings.allows(spec.risk)
    if not switched_on and not spec.has_dry_run:
        nothing = f"it was not called, because {spec.risk} tools are switched off"
        return _ended(call, ToolExecutionStatus.SKIPPED, ToolResult(success=True, output=nothing, dry_run=True))
    if switched_on and spec.risk is not Risk.READ:
        grant = grant_for(call, packet, spec)
        if grant is None:  # it has lapsed since it was looked at
            error = "its approval has lapsed, so it was not run; ask for it anew"
            return _ended(call, ToolExecutionStatus.FAILED, ToolResult(success=False, error=error))
        if not await claim(f"{grant.question_id}:{call.call_id}"):
            error = "its approval was used before, so it is not run again; ask for it anew if it is to be"
            return _ended(call, ToolExecutionStatus.UNKNOWN, ToolResult(success=False, error=error))
    params = {**call.params, "dry_run": not switched_on} if spec.has_dry_run else dict(call.params)
    try:
        result = await toolbox.call(call.tool_name, params)
    except LostCallError as error:
        doubt = switched_on and spec.risk is not Risk.READ
        status = ToolExecutionStatus.UNKNOWN if doubt else ToolExecutionStatus.FAILED
        return _ended(call, status, ToolResult(success=False, error=str(error)))
    except ToolCallError as error:
        return _ended(call, ToolExecutionStatus.FAILED, ToolResult(success=False, error=str(error)))
    if not result.success:
        return _ended(call, ToolExecutionStatus.FAILED, result)
    if not switched_on:
        return _ended(call, ToolExecutionStatus.SKIPPED, result.as_dry_run())
    return _ended(call, ToolExecutionStatus.EXECUTED, result)


async def rehearse(calls: Sequence[ToolCall], catalogue: Catalogue, toolbox: Toolbox) -> tuple[ToolCall, ...]:
    """Return the calls; one that waits for the user, and of which a dry run says that it can only fail, has failed."""
    return tuple(await asyncio.gather(*(_rehearsed(call, catalogue, toolbox) for call in calls)))


async def _rehearsed(call: ToolCall, catalogue: Catalogue, toolbox: Toolbox) -> ToolCall:
    spec = catalogue.get(call.tool_name)
    if not call.status.awaits_user or spec is None or not spec.has_dry_run:
        return call
    try:
        async with asyncio.timeout(PATIENCE_S):
            result = await toolbox.call(call.tool_name, {**call.params, "dry_run": True})
    except (ToolCallError, TimeoutError):  # what that says of the call in earnest is not known
        return call
    return call if result.success else _ended(call, ToolExecutionStatus.FAILED, result)


def _broken(call: ToolCall, error: BaseException) -> ToolCall:
    if not isinstance(error, Exception):
        raise error
    log.error("call %s of %s broke", call.call_id, call.tool_name, exc_info=error)
    status = ToolExecutionStatus.FAILED if call.risk is Risk.READ else ToolExecutionStatus.UNKNOWN
    return _ended(call, status, ToolResult(success=False, error=f"the call broke: {type(error).__name__}: {error}"))


def _ended(call: ToolCall, status: ToolExecutionStatus, result: ToolResult) -> ToolCall:
    return call.ended(status, result)
