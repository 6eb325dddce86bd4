"""The gate: decides whether calls may run, asks about them, and runs each call once.

The graph, the proxy, the middleware and the library call the gate; the gate depends on none of them.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from traceback import format_exception
from typing import Any

from pydantic import JsonValue

from packetgate.gate.answers import ALREADY_ANSWERED, decide, expire
from packetgate.gate.checks import (
    BEFORE_HINTS,
    CHECKS,
    Check,
    call_digest,
    may_run,
    refusal_code,
    strictest_verdict,
    verdict_digest,
)
from packetgate.gate.confidence import CallReview, gated_call
from packetgate.gate.facts import CHOSEN_BY_CLIENT, SHORT_CHARS, Facts, RequestedCall
from packetgate.gate.grants import Grants
from packetgate.gate.journal import (
    CALL_MARKED,
    ENDED,
    PAUSED,
    STARTED,
    BufferedJournal,
    CallLog,
    Entry,
    Journal,
    entry_for,
    read_entry,
    turn_opened,
)
from packetgate.gate.proposal import Proposal
from packetgate.plugins import installed
from packetgate.state.base import ErrorType, now
from packetgate.state.codes import Code
from packetgate.state.errors import CallRefusedError, ConfigError, LostCallError, ToolCallError
from packetgate.state.redaction import redacted
from packetgate.state.routing import NO_OBJECTION, Correction, Risk, ToolCall, ToolResult, Verdict
from packetgate.state.sections import Approval, ApprovalOutcome
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.toolbox import PausedCallError, judged_definition
from packetgate.tools.checks.checking import repair_call
from packetgate.tools.checks.validation import check_call
from packetgate.tools.risk.tool import confirm_read_hint
from packetgate.tools.spec.tool_spec import digest_of
from packetgate.tools.text.result_store import session_results

_logger = logging.getLogger(__name__)

_DRY_RUN_TIMEOUT_S = 3.0
"""Longest time, in seconds, that a question waits for dry runs."""

_PROPOSED_FIELDS = {"tool_name", "params", "risk", "open_world", "risk_reasons", "provenance", "status"}
_MAX_HELD = 1_000
"""Maximum number of turns whose events wait for a run."""

Execute = Callable[[str, dict[str, Any], str], Awaitable[ToolResult]]
"""Sends a call to its tool: canonical name, arguments, idempotency key."""

Doubt = Callable[[ToolCall], Awaitable[CallReview | None]]
"""Reviews a call that has its verdict; None if it has no objection."""


class Gate:
    """Decides calls, asks about them and runs them. Data that must outlast the process are in the journal.

    Examples:
        >>> from packetgate.gate.journal import MemoryJournal
        >>> from packetgate.state.sections import Header
        >>> gate = Gate(MemoryJournal())
        >>> facts = Facts(header=Header(), words="Delete notes.txt")
        >>> proposal = asyncio.run(gate.propose([ToolCall(tool_name="files.delete")], facts))
        >>> proposal.calls[0].verdict.why
        'There is no tool `files.delete`. Nearest: none'
    """

    def __init__(
        self,
        journal: Journal,
        execute: Execute | None = None,
        checks: Sequence[Check] | None = None,
        *,
        unknown_hint: str = "",
        logs_errors: bool = True,
    ) -> None:
        """Create a gate that records in a journal.

        Args:
            execute: sends calls to their tools, also dry runs for the previews of questions.
            checks: checks in addition to those of every gate; None: those of the installed plug-ins.
            unknown_hint: added to the refusal of an unknown tool.
            logs_errors: whether errors of runs are logged; False if the caller raises them again.
        """
        self.journal, self._execute, self._unknown_hint = journal, execute, unknown_hint
        self._logs_errors = logs_errors
        self._checks = (*CHECKS, *(installed().parts("checks") if checks is None else checks))
        self._held: dict[str, tuple[Entry, ...]] = {}
        """Events of calls that run next, by turn. They are written together with the start."""
        self._running: set[str] = set()
        """Ids of turns whose calls run in this process."""

    async def request(self, requested: RequestedCall, facts: Facts) -> tuple[ToolCall, tuple[Correction, ...]]:
        """Repair and trace a client's call; return it with the repairs.

        Raises:
            CallRefusedError: the tool does not exist, an argument is invalid, or the call would change something.
        """
        spec = facts.catalogue.get(requested.name)
        if (
            spec is not None
            and not spec.resolve_arguments
            and facts.is_short
            and len(str(requested.params)) < SHORT_CHARS
        ):
            return self._requested_call(requested, facts)
        return await asyncio.to_thread(self._requested_call, requested, facts)

    async def propose(
        self,
        calls: Sequence[ToolCall],
        facts: Facts,
        reviews: Mapping[str, CallReview] | None = None,
        corrections: tuple[Correction, ...] = (),
        doubt: Doubt | None = None,
    ) -> Proposal:
        """Check and judge the calls, and return them: each runs, waits for an answer, is a dry run, or is refused.

        Args:
            reviews: the judgement on each call, by call id; None: the client has decided. A call without a judgement
                is not approved.
            doubt: reviews calls that the client has decided, to ask about more of them.
        """
        gated = []
        for call in await self.judge(calls, facts):
            if reviews is None:
                doubted = await doubt(call) if doubt else None
                review = doubted or CallReview.unjudged(call, CHOSEN_BY_CLIENT)
            else:
                review = reviews.get(call.call_id) or CallReview.failed(call, "the review failed")
            gated.append(gated_call(call, review, facts.settings, can_ask=facts.can_ask))
        if facts.renames_calls:
            gated = [call if call.risk is Risk.READ else await self._with_unfinished_run(call, facts) for call in gated]
        approvals = _approvals_without_question(gated, facts)
        proposal = Proposal(facts, tuple(gated), corrections=corrections, approvals=tuple(approvals))
        if proposal.is_plain_read and proposal.approved:
            return proposal
        proposal = replace(proposal, approvals=())
        proposed = [
            entry_for(
                facts.header, "call_proposed", call.call_id, call.model_dump(mode="json", include=_PROPOSED_FIELDS)
            )
            for call in gated
        ]
        opened = [turn_opened(facts.header, facts.words)] if facts.renames_calls else []
        return await self.ask(replace(proposal, entries=(*opened, *proposed)).with_approvals(*approvals))

    async def ask(self, proposal: Proposal) -> Proposal:
        """Return the proposal with previews of its waiting calls, and with a question about them."""
        proposal, previews = await self._previews(proposal) if proposal.waiting else (proposal, {})
        if not proposal.waiting:
            return replace(proposal, question=None)
        call = proposal.waiting[0]
        question_id = call.call_id if proposal.facts.renames_calls else ""
        if call.started_at and question_id:  # the question before the run has that id
            question_id = digest_of([question_id, call.started_at.isoformat()])[: len(question_id)]
        return proposal.asking(previews, question_id)

    async def answer(self, proposal: Proposal, reply: Any) -> Proposal:
        """Return the proposal with the user's decisions. An answer is used only once, in all processes.

        Raises:
            RequestError: the reply cannot be read, or names another question or call.
            CallRefusedError: a call has changed since the question (`call-changed`), or the question was decided
                before (`answer-taken`).
        """
        question = proposal.question
        if question is None:
            return proposal
        if question.has_expired:
            return expire(proposal, question)
        decided, grants = await asyncio.to_thread(decide, proposal, question, reply)
        if not await self.journal.claim(question.question_id):
            raise CallRefusedError(ALREADY_ANSWERED, code=Code.ANSWER_TAKEN)
        for grant in grants:
            await Grants(self.journal).give(grant, proposal.facts.header)
        return decided

    async def run(self, proposal: Proposal, execute: Execute | None = None) -> Proposal:
        """Run the approved calls concurrently, each once, and return the proposal.

        The data on which a verdict depends are verified first. A call whose earlier run has no recorded end waits for
        an answer instead; `ask` asks about it. A call that its tool paused runs alone, so that no other call can
        receive its answer; the others stay approved.

        Raises:
            PausedCallError: a tool interrupts its call. The other calls have ended.
            ConfigError: the journal cannot be used.
        """
        facts, execute, running = proposal.facts, execute or self._execute, await self._next_calls(proposal)
        if execute is None:
            raise ValueError("this gate has no tools: pass `execute`")
        held = self._held.pop(facts.header.packet_id, ())
        changes = [
            call
            for call in running
            if call.risk is not Risk.READ and facts.settings.allows(call.risk) and call.tool_name in facts.catalogue
        ]
        marks = [_mark(call, facts) for call in changes if facts.renames_calls]
        journal = BufferedJournal(self.journal, *held, *marks)
        self._running.add(facts.header.packet_id)
        try:
            runs = [self._run_call(call, proposal, execute, journal) for call in running]
            ends = await asyncio.gather(*runs, return_exceptions=True)
        finally:
            self._running.discard(facts.header.packet_id)
        for error in ends:
            if isinstance(error, ConfigError):
                raise error
        await journal.record()
        for error in ends:
            if isinstance(error, PausedCallError):
                raise error
        ended = [
            _failed_call(call, end, logs=self._logs_errors) if isinstance(end, BaseException) else end
            for call, end in zip(running, ends, strict=True)
        ]
        if not facts.can_ask:
            unasked = ToolExecutionStatus.SKIPPED, "nobody can be asked"
            ended = [call.with_decision(*unasked) if call.status.awaits_user else call for call in ended]
        is_plain_read, proposal = proposal.is_plain_read, proposal.with_calls(ended)
        for call in ended:
            if is_plain_read:
                proposal = proposal.with_entries(read_entry(call, facts.header, facts.words))
                continue
            event = "call_unfinished" if call.status.awaits_user else f"call_{call.status}"
            proposal = proposal.with_events(event, [call], error_line(call))
        return proposal

    async def record(self, proposal: Proposal) -> Proposal:
        """Write the events of a proposal, and return it without them.

        If its calls only have to run, the events are held until the run.
        """
        if proposal.approved and proposal.question is None and len(proposal.approved) == len(proposal.calls):
            packet_id = proposal.facts.header.packet_id
            self._held[packet_id] = self._held.get(packet_id, ()) + proposal.entries
            if len(self._held) > _MAX_HELD:
                await self.journal.record(*self._held.pop(next(iter(self._held))))
        elif proposal.entries:
            await self.journal.record(*proposal.entries)
        return replace(proposal, entries=())

    def _requested_call(self, requested: RequestedCall, facts: Facts) -> tuple[ToolCall, tuple[Correction, ...]]:
        checked = repair_call(
            requested.name, requested.params, facts.catalogue, words=facts.session_words or facts.words
        )
        if checked.tool_name not in facts.catalogue:
            message = _unknown_tool_message(requested.name, facts.catalogue) + self._unknown_hint
            raise CallRefusedError(message, code=Code.TOOL_UNKNOWN)
        problems = check_call(checked.tool_name, checked.params, facts.offered, facts.catalogue)
        if problems:
            message = " ".join(problem.message for problem in problems)
            raise CallRefusedError(message, code=refusal_code(problems[0]))
        spec, params = facts.catalogue[checked.tool_name], checked.params
        if spec.derived_parameters and spec.resolve_arguments:
            with session_results(facts.header.session_id):
                params = spec.resolve_arguments(params)
        known_id = {"call_id": requested.call_id} if requested.call_id else {}
        call = facts.traced_call(spec, params, selection_reasoning=CHOSEN_BY_CLIENT, **known_id)
        if requested.refusal_if_changing and call.risk is not Risk.READ:
            reasons = f": {'; '.join(call.risk_reasons)}" if call.risk_reasons else ""
            read_hint = f" {confirm_read_hint(call)}" if call.is_unconfirmed_read else ""
            message = f"{call.tool_name} may {call.risk}{reasons}. {requested.refusal_if_changing}{read_hint}"
            raise CallRefusedError(message, code=Code.NOT_READ_ONLY)
        return call, checked.repairs

    async def judge(self, calls: Sequence[ToolCall], facts: Facts) -> list[ToolCall]:
        """Return the calls with their current risk, and with the strictest verdict on each. Nothing is recorded."""
        facts = await _with_hints(calls, facts)
        if self._checks == CHECKS and facts.is_short and sum(len(str(call.params)) for call in calls) < SHORT_CHARS:
            judged = self._verdicts(calls, facts)
        else:
            judged = await asyncio.to_thread(self._verdicts, calls, facts)
        policy, grants = facts.catalogue.preferences.policy, {}
        for call in judged:
            verdict = call.verdict or NO_OBJECTION
            may_have_approval = policy.remember != "never" and (verdict.effect == "ask" or bool(verdict.by))
            may_have_trust = call.is_unconfirmed_read and verdict.effect != "refuse" and policy.remembers_trust
            if call.tool_name in facts.catalogue and (may_have_approval or may_have_trust):
                digest, only_trust = facts.catalogue[call.tool_name].digest, not may_have_approval
                grant = await Grants(self.journal).covering(
                    call, digest, facts.header, facts.words, only_trust=only_trust
                )
                if grant is not None:
                    grants[call.call_id] = grant
        if not grants:
            return judged
        known = replace(facts, grants=grants)
        again = await asyncio.to_thread(self._verdicts, [call for call in judged if call.call_id in grants], known)
        by_id = {call.call_id: call for call in again}
        return [by_id.get(call.call_id, call) for call in judged]

    def _verdicts(self, calls: Iterable[ToolCall], facts: Facts) -> list[ToolCall]:
        judged = []
        for call in calls:
            spec = facts.catalogue.get(call.tool_name)
            rated = facts.current_call(call, facts.hints.get(call.call_id))
            verdict = strictest_verdict(self._checks, rated, facts)
            digest = verdict_digest(rated, verdict, spec, facts) if spec else ""
            judged.append(rated.changed(verdict=verdict, verdict_digest=digest))
        return judged

    async def _next_calls(self, proposal: Proposal) -> tuple[ToolCall, ...]:
        """Return the approved calls that run together: all, or the first that its tool has paused."""
        approved = proposal.approved
        for call in approved if len(approved) > 1 else ():
            rows = await self.journal.call_entries(proposal.facts.header.packet_id, call.call_id)
            if any(row.entry.event == PAUSED for row in rows):
                return (call,)
        return approved

    async def _run_call(self, call: ToolCall, proposal: Proposal, execute: Execute, journal: Journal) -> ToolCall:
        facts = proposal.facts
        try:
            call, approval = await self._permitted(call, proposal)
            spec, header = facts.catalogue[call.tool_name], facts.header
            judged_definition.set(spec.digest)  # of this task
            by_grant = approval is not None and bool(approval.grant_id)
            if may_run(call, facts, is_approved=approval is not None, by_grant=by_grant):
                log = CallLog(call, header, spec, approval.question_id if approval else "", journal)
                if proposal.is_plain_read:  # a repeated read has another id: nothing to continue
                    return await _send(call, _sent_params(log), execute, header.session_id)
                return await self._run_once(log, execute, approval.grant_id if approval else "")
            if spec.has_dry_run:
                return await _send(call, {**call.params, "dry_run": True}, execute, header.session_id, dry_run=True)
        except CallRefusedError as error:
            return call.with_result(ToolExecutionStatus.FAILED, _failed_result(error))
        output = _why_read_is_off(call) or f"it was not called, because {call.risk} tools are switched off"
        return call.with_result(
            ToolExecutionStatus.SKIPPED, ToolResult(success=True, output=output, dry_run=True, server_part="")
        )

    async def _permitted(self, call: ToolCall, proposal: Proposal) -> tuple[ToolCall, Approval | None]:
        """Return a call that may run, or may be a dry run, with its approval.

        Raises:
            CallRefusedError: a check refuses the call, or its approval is missing.
        """
        facts, name = proposal.facts, call.tool_name
        spec = facts.catalogue.get(name)
        if spec is None or not call.verdict or call.verdict_digest != verdict_digest(call, call.verdict, spec, facts):
            (call,) = await asyncio.to_thread(self._verdicts, [call], facts)
        verdict: Verdict = call.verdict or NO_OBJECTION
        if verdict.effect == "refuse":
            raise CallRefusedError(f"{verdict.why}.", code=verdict.code or Code.CALL_REFUSED)
        approval = proposal.approval_of(call)
        if verdict.effect == "ask" and (approval is None or approval.is_by_rule):
            if verdict.or_dry_run:
                return call, None
            message = (
                f"{name}: {verdict.why}, and there is no unexpired approval for exactly these arguments, this "
                "definition of the tool and this server. Send the request again to be asked."
            )
            raise CallRefusedError(message, code=Code.APPROVAL_MISSING)
        if verdict.by and approval is None:
            message = (
                f"{name}: {verdict.by} allows the call, but the approval was not recorded or has expired. "
                "Send the request again."
            )
            raise CallRefusedError(message, code=Code.APPROVAL_MISSING)
        return call, approval

    async def _run_once(self, log: CallLog, execute: Execute, grant_id: str) -> ToolCall:
        """Run a call once, and return it with its result.

        The call does not run if the journal has its end, or the start of a write whose end is unknown.
        """
        call, header = log.call, log.header
        while True:
            log = await log.read()
            if log.end is not None:
                return log.end
            unfinished = log.unfinished_start
            if unfinished is not None and call.risk is not Risk.READ and call.started_at != unfinished:
                return call.with_unfinished_run(unfinished)
            if grant_id and not await Grants(log.journal).use(grant_id, call, header):
                message = "the remembered approval was revoked, is used up or has expired: approve the call again"
                raise CallRefusedError(message, code=Code.GRANT_OVER)
            if await log.start():
                break
        try:
            key = log.idempotency_key
            end = await _send(call, _sent_params(log), execute, header.session_id, idempotency_key=key)
        except PausedCallError as paused:
            if paused.result is None:
                await log.pause()
            else:
                await log.finish(call.with_result(ToolExecutionStatus.EXECUTED, paused.result))
            raise
        try:
            await log.finish(end)
        except ConfigError as error:  # the packet may still be stored
            _logger.warning("the end of call %s of %s is not in the journal: %s", call.call_id, call.tool_name, error)
        return end

    async def _previews(self, proposal: Proposal) -> tuple[Proposal, dict[str, ToolCall]]:
        """Run the waiting calls as dry runs, if their tools support that, for at most `_DRY_RUN_TIMEOUT_S`."""
        execute, catalogue, ends = self._execute, proposal.facts.catalogue, dict[str, ToolCall]()
        calls = [  # a dry run of a read would run it
            call
            for call in proposal.waiting
            if call.risk is not Risk.READ and call.tool_name in catalogue and catalogue[call.tool_name].has_dry_run
        ]
        if not calls or execute is None:
            return proposal, {}

        async def run_dry(call: ToolCall) -> None:
            params, session = {**call.params, "dry_run": True}, proposal.facts.header.session_id
            judged_definition.set(catalogue[call.tool_name].digest)  # of this task
            try:
                ends[call.call_id] = await _send(call, params, execute, session, dry_run=True)
            except Exception as error:  # noqa: BLE001  the tool's own
                ends[call.call_id] = _failed_call(call, error)

        try:
            async with asyncio.timeout(_DRY_RUN_TIMEOUT_S):
                await asyncio.gather(*map(run_dry, calls))
        except TimeoutError:
            pass  # dry runs without an end are reported as timed out
        for call in calls:
            end = ends.get(call.call_id)
            outcome = "passed" if end is None or end.status is not ToolExecutionStatus.FAILED else "failed"
            proposal = proposal.with_events(f"dry_run_{outcome if end else 'timed_out'}", [call])
        failed = [end for end in ends.values() if end.status is not ToolExecutionStatus.SKIPPED]
        return proposal.with_calls(failed), ends

    async def _with_unfinished_run(self, call: ToolCall, facts: Facts) -> ToolCall:
        """Return a change as waiting if this client's earlier, equal change has no recorded end.

        If an equal change has run, a question states its time: the client may repeat a change whose result it missed.
        """
        if not (call.status.awaits_user or call.status is ToolExecutionStatus.APPROVED):
            return call
        rows = await self.journal.call_entries("", _mark_digest(call, facts))
        run = rows[-1].entry.detail if rows else {}
        if not run or run["packet"] in self._running:
            return call
        rows = await self.journal.call_entries(str(run["packet"]), str(run["call"]))
        started: list[datetime] = [row.at for row in rows if row.entry.event == STARTED]
        ended = [row for row in rows if row.entry.event == ENDED]
        if ended and call.status.awaits_user:
            end = f"an equal call ran at {ended[-1].at:%Y-%m-%d %H:%M:%S} UTC and ended as"
            why = f"{call.review_reasoning}; {end} {ended[-1].entry.detail['status']}"
            return call.changed(review_reasoning=why.removeprefix("; "))
        if not started or any(row.entry.event in {ENDED, PAUSED} for row in rows):
            return call
        if call.status.awaits_user:
            return call.changed(started_at=started[-1])
        return call.with_unfinished_run(started[-1])


async def _with_hints(calls: Sequence[ToolCall], facts: Facts) -> Facts:
    """Return the facts with the hints of the servers that offer them. A hint applies only to this judgement."""
    asked = {}
    for call in calls:
        spec = facts.catalogue.get(call.tool_name)
        if spec is None or spec.ask_hints is None:
            continue
        current = await asyncio.to_thread(facts.current_call, call)
        verdict = await asyncio.to_thread(strictest_verdict, BEFORE_HINTS, current, facts)
        if verdict.effect not in ("refuse", "ask"):
            real = {"dry_run": False} if spec.has_dry_run else {}
            asked[call.call_id] = spec.ask_hints({**spec.default_args, **call.params, **real})
    if not asked:
        return facts
    found = zip(asked, await asyncio.gather(*asked.values()), strict=True)
    return replace(facts, hints={call_id: hints for call_id, hints in found if hints is not None})


def error_line(call: ToolCall) -> str:
    """Return why a call has no result, in one line; empty if it has one."""
    error = call.unfinished_run_text if call.status.awaits_user else call.result.error if call.result else None
    return " ".join(error.split())[:200] if error else ""


def _unknown_tool_message(name: str, catalogue: Catalogue) -> str:
    nearest = ", ".join(catalogue[tool].listed_name for tool in catalogue.similar_names(name))
    fallback = "no tool has a similar name" if catalogue else "no tools are available"
    hint = f"similar names: {nearest}" if nearest else fallback
    return f"unknown tool {name!r}: {hint}"


def _approvals_without_question(calls: Iterable[ToolCall], facts: Facts) -> list[Approval]:
    """Return the approvals of calls that passed the gate and that a rule or grant allows."""
    expires = now() + timedelta(seconds=facts.settings.ask_timeout_s)
    return [
        Approval(
            call_id=call.call_id,
            tool_name=call.tool_name,
            params=call.params,
            outcome=ApprovalOutcome.APPROVED,
            comment=f"by {call.verdict.by}",
            digest=call_digest(call, facts.catalogue[call.tool_name]),
            expires_at=expires,
            by=call.verdict.by,
            grant_id=call.verdict.grant_id,
        )
        for call in calls
        if call.status is ToolExecutionStatus.APPROVED and call.verdict is not None and call.verdict.by
    ]


def _mark(call: ToolCall, facts: Facts) -> Entry:
    """Return the entry that maps a change of a client to its run, so that an equal change finds the run."""
    run: dict[str, JsonValue] = {"packet": facts.header.packet_id, "call": call.call_id}
    return Entry(CALL_MARKED, facts.header.session_id, call_id=_mark_digest(call, facts), detail=run)


def _mark_digest(call: ToolCall, facts: Facts) -> str:
    spec, header = facts.catalogue[call.tool_name], facts.header
    return digest_of([header.origin, header.person, call_digest(call, spec)])


def _sent_params(log: CallLog) -> dict[str, Any]:
    """Return the arguments of a run, with the key by which the server knows a retry, and without a dry run."""
    params, name = {**log.call.params}, log.spec.key_parameter
    if name and not params.get(name):
        params[name] = log.idempotency_key or log.call.call_id
    if log.spec.has_dry_run:
        params["dry_run"] = False
    return params


async def _send(
    call: ToolCall,
    params: dict[str, Any],
    execute: Execute,
    session: str,
    *,
    dry_run: bool = False,
    idempotency_key: str = "",
) -> ToolCall:
    try:
        with session_results(session, call.call_id):
            result = await execute(call.tool_name, params, idempotency_key)
    except ToolCallError as error:
        may_have_changed = isinstance(error, LostCallError) and not dry_run and call.risk is not Risk.READ
        status = ToolExecutionStatus.UNKNOWN if may_have_changed else ToolExecutionStatus.FAILED
        return call.with_result(status, _failed_result(error))
    if not result.success:
        return call.with_result(ToolExecutionStatus.FAILED, result)
    if dry_run:
        return call.with_result(ToolExecutionStatus.SKIPPED, result.changed(dry_run=True))
    return call.with_result(ToolExecutionStatus.EXECUTED, result)


def _failed_call(call: ToolCall, error: BaseException, *, logs: bool = True) -> ToolCall:
    if not isinstance(error, Exception):
        raise error
    if logs:
        trace = redacted("".join(format_exception(error)))
        _logger.error("call %s of %s failed: %s", call.call_id, call.tool_name, trace)
    may_have_run = call.risk is not Risk.READ and call.status is ToolExecutionStatus.APPROVED
    status = ToolExecutionStatus.UNKNOWN if may_have_run else ToolExecutionStatus.FAILED
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
