"""Answers that another process records: the process that asked runs them, on its own servers.

A process that keeps running, such as the proxy, holds a lease, and records the lease's name with each question that it
asks. `packetgate answer` then only records the answer, once. While a question is open, the process that asked
looks for answers several times a second, and continues the turn.
"""

import asyncio
import contextvars
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from packetgate.connectors.sessions import Sessions, SessionState, already_answered_error
from packetgate.connectors.turn import (
    NOT_SHOWN,
    Asked,
    Finished,
    Recorded,
    Reply,
    TurnEvent,
    UserInput,
    is_answer_to,
    run_turn,
)
from packetgate.gate.journal import ANSWER_FAILED, ANSWER_RECORDED, QUESTION_OWNED, Entry, Journal
from packetgate.graph.journal import DatabaseJournal
from packetgate.graph.leases import Leases
from packetgate.state.base import new_id, now
from packetgate.state.codes import Code
from packetgate.state.context import RoutingContext
from packetgate.state.errors import PacketgateError, SessionError
from packetgate.state.request import check_reply

POLL_S = 0.25
"""Seconds between two reads of the journal while a question is open."""
RESULT_WAIT_S = 10.0
"""Seconds that `packetgate answer` waits for the result of the answer that it recorded."""
ERROR_PAUSE_S = 10.0
"""Seconds to pause after the journal could not be read."""
EXIT_S = 5.0
"""Seconds that the process waits at exit for running answers."""
MAX_QUESTIONS = 10_000
OVERLAP_ROWS = 1_000
"""Rows of the journal that are read again: in PostgreSQL, a row may become visible after later ones."""

log = logging.getLogger(__name__)


@dataclass
class _Question:
    question_id: str
    context: RoutingContext
    """The settings of the turn that asked."""
    until: float
    """Time at which the question has certainly expired, on the monotonic clock."""
    here: contextvars.Context = field(default_factory=contextvars.copy_context)
    """The context variables of the turn's request, such as the headers that its server receives."""
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    run: asyncio.Task[None] | None = None
    tried_seq: int = 0
    """Number of the journal's row with the answer that was tried last."""


class RecordedAnswers:
    """The open questions of this process, and the answers to them that other processes record."""

    def __init__(self, sessions: Sessions, journal: DatabaseJournal, leases: Leases, channel: str) -> None:
        """Take note of the questions of `sessions`; `channel` names this process to users, such as `proxy`."""
        self._sessions, self._journal, self._leases = sessions, journal, leases
        self._process, self._channel = f"process {new_id()}", channel
        self._questions: dict[str, _Question] = {}
        self._has_questions = asyncio.Event()
        self._last_seq = 0
        sessions.note_end = self.note_end

    @asynccontextmanager
    async def run_in_background(self) -> AsyncIterator["RecordedAnswers"]:
        """Run recorded answers until the context ends."""
        async with self._leases.hold(self._process):
            watching = asyncio.create_task(self._watch(), name="recorded answers")
            try:
                yield self
            finally:
                watching.cancel()
                running = [asked.run for asked in self._questions.values() if asked.run]
                if running:
                    await asyncio.wait(running, timeout=EXIT_S)
                for run in running:
                    run.cancel()
                await asyncio.gather(watching, *running, return_exceptions=True)

    async def note_end(self, session: str, question: dict[str, Any] | None, context: RoutingContext) -> None:
        """Take note of the question with which a turn of this process ended; None: no question is open."""
        before = self._questions.pop(session, None)
        if before is not None:
            before.closed.set()
        if question is None:
            return
        question_id = str(question["question_id"])
        detail = {"process": self._process, "channel": self._channel}
        await self._journal.record(Entry(QUESTION_OWNED, session, call_id=question_id, detail=detail))
        self._questions[session] = _Question(question_id, context, time.monotonic() + context.ask_timeout_s + EXIT_S)
        if len(self._questions) > MAX_QUESTIONS:
            self._questions.pop(next(iter(self._questions)))
        self._has_questions.set()

    async def wait(self, session: str, timeout_s: float) -> bool:
        """Wait until the open question of a session is answered and its turn has continued; return whether it has."""
        await self._look()
        asked = self._questions.get(session)
        if asked is not None and timeout_s > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(asked.closed.wait(), timeout_s)
        return session not in self._questions

    def is_running(self, session: str) -> bool:
        """Whether an answer to the session's question is running."""
        asked = self._questions.get(session)
        return asked is not None and asked.run is not None

    async def wait_until_idle(self, timeout_s: float) -> None:
        """Wait until no answer runs, or for at most this time."""
        if running := [asked.run for asked in self._questions.values() if asked.run]:
            await asyncio.wait(running, timeout=timeout_s)

    async def _watch(self) -> None:
        while True:
            await self._has_questions.wait()
            await asyncio.sleep(POLL_S)
            try:
                await self._look()
            except Exception:
                log.exception("recorded answers cannot be read")
                await asyncio.sleep(ERROR_PAUSE_S)
            over = [name for name, asked in self._questions.items() if not asked.run and time.monotonic() > asked.until]
            for session in over:
                self._questions.pop(session).closed.set()
            if not self._questions:
                self._has_questions.clear()

    async def _look(self) -> None:
        rows = await self._journal.event_entries(ANSWER_RECORDED, after=self._last_seq - OVERLAP_ROWS)
        for row in rows:
            self._last_seq = max(self._last_seq, row.seq)
            session, reply = row.entry.session_id, row.entry.detail.get("reply")
            asked = self._questions.get(session)
            if asked and asked.run is None and asked.question_id == row.entry.call_id and row.seq > asked.tried_seq:
                asked.tried_seq = row.seq
                asked.run = asyncio.create_task(self._run(session, asked, reply), context=asked.here)

    async def _run(self, session: str, asked: _Question, reply: Any) -> None:
        problem = ""
        try:
            run = self._sessions.run_answer or self._run_turn
            await run(session, Reply(reply, asked.question_id), asked.context)
        except PacketgateError as error:
            problem = str(error)
        except Exception:
            log.exception("session %s: the recorded answer failed", session)
            problem = f"internal error; see the log of the {self._channel}"
        finally:
            asked.run = None
        if problem:
            try:
                await self._journal.record(
                    Entry(ANSWER_FAILED, session, call_id=asked.question_id, detail={"detail": problem})
                )
            except PacketgateError as error:
                log.warning("session %s: it is not recorded why the answer failed: %s", session, error)

    async def _run_turn(self, session: str, reply: Reply, context: RoutingContext) -> None:
        async with aclosing(run_turn(self._sessions, reply, session, context)) as events:
            async for _ in events:
                pass


async def asked_sessions(journal: DatabaseJournal) -> list[str]:
    """Return the sessions with a question from the last day whose process waited for the answer."""
    rows = await journal.event_entries(QUESTION_OWNED, since=now() - timedelta(days=1))
    return [*dict.fromkeys(row.entry.session_id for row in rows)]


@dataclass(frozen=True)
class TurnOwner:
    """The process that runs a turn."""

    channel: str
    process: str
    is_alive: bool


async def turn_owner(state: SessionState, sessions: Sessions, journal: Journal) -> TurnOwner | None:
    """Return the process that asked a turn's last question; None if that process has ended."""
    answered = [approval.question_id for approval in state.packet.governance.approvals]
    question_id = str(state.question["question_id"]) if state.question else next(reversed(answered), "")
    rows = await journal.call_entries("", question_id) if question_id else ()
    owned = [row.entry.detail for row in rows if row.entry.event == QUESTION_OWNED and row.entry.detail]
    if not owned:
        return None
    process = str(owned[-1]["process"])
    return TurnOwner(str(owned[-1]["channel"]), process, await sessions.is_leased(process))


async def record_answer(
    sessions: Sessions,
    turn: UserInput,
    session: str,
    _context: RoutingContext,
    *,
    owner: TurnOwner,
    journal: Journal,
) -> AsyncGenerator[TurnEvent]:
    """Record the answer to a question of another process, and yield the end of its turn there.

    Raises:
        SessionError: the question was already answered, the answer cannot be used, or the other process ended.
    """
    state = await sessions.state(session)
    question = state.question
    if question is None and isinstance(turn, Reply):
        raise already_answered_error(session)
    if question is not None and (not isinstance(turn, Reply) or not is_answer_to(turn, question)):
        yield Asked({**question, **({"problem": NOT_SHOWN} if isinstance(turn, Reply) else {})}, state.packet)
        return
    question_id = str(question["question_id"]) if question else ""
    failures = len(await _failures(question_id, journal))
    if isinstance(turn, Reply):
        key, detail = f"answer:{question_id}:{failures}", {"reply": check_reply(turn.value)}
        if not await journal.record(Entry(ANSWER_RECORDED, session, call_id=question_id, detail=detail, key=key)):
            raise already_answered_error(session)
    deadline = time.monotonic() + RESULT_WAIT_S
    while time.monotonic() < deadline:
        await asyncio.sleep(POLL_S)
        state = await sessions.state(session)
        if state.question is None and not state.is_unfinished:
            yield Finished(state.packet)
            return
        if state.question is not None and state.question["question_id"] != question_id:
            yield Asked(state.question, state.packet)
            return
        if len(problems := await _failures(question_id, journal)) > failures:
            raise SessionError(problems[-1], Code.QUESTION_NOT_OPEN)
        if not await sessions.is_leased(owner.process):
            raise SessionError(
                f"the answer is recorded, but the {owner.channel} that asked ended before it reported a result; "
                f"`packetgate answer --session {session}` shows what is known",
                Code.TURN_INTERRUPTED,
            )
    yield Recorded(state.packet, owner.channel)


async def _failures(question_id: str, journal: Journal) -> list[str]:
    rows = await journal.call_entries("", question_id)
    return [str(row.entry.detail.get("detail", "")) for row in rows if row.entry.event == ANSWER_FAILED]
