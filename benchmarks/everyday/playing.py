"""Play a request to its end as a connector does, with a simulated person who approves every call."""

from collections.abc import Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from benchmarks.everyday.cases import Request
from packetgate.connectors.sessions import Sessions
from packetgate.connectors.turn import Asked, Finished, Reply, Say, UserInput, run_turn
from packetgate.state.base import TokenUsage, new_id
from packetgate.state.context import RoutingContext
from packetgate.state.errors import RequestError
from packetgate.state.packet import CognitionPacket

CONTEXT = RoutingContext(allow_write_tools=True, allow_execute_tools=True)
MAX_QUESTIONS = 8
"""Maximum number of questions in a turn, more than any request needs."""


@dataclass(frozen=True)
class CallRecord:
    """A call that needed approval or ran."""

    tool: str
    params: Mapping[str, Any]
    confidence: float
    """Confidence of the review."""
    doubted: bool
    """Whether the confidence was below the threshold. The question then says that the call may be wrong."""
    approved: bool
    """Whether the call needed approval, and the person approved it."""
    ran: bool
    failed: bool


@dataclass
class Transcript:
    """The calls and the answers of one request."""

    answers: list[str] = field(default_factory=list)
    """For each message, the answer, or the question if the turn ends with a question."""
    turns: list[list[CallRecord]] = field(default_factory=list)
    """The calls of each turn."""
    questions: int = 0
    """Number of questions to the person."""
    asks: bool = False
    """Whether the last turn ends with a question."""
    picked: bool = False
    """Whether no call ran, and the person chose the first of the offered commands."""
    usage: TokenUsage = field(default_factory=TokenUsage)
    seconds: float = 0.0

    @property
    def answer(self) -> str:
        """The last answer or question."""
        return self.answers[-1] if self.answers else ""

    @property
    def ran(self) -> list[CallRecord]:
        """The calls of all turns that ran or failed."""
        return [call for calls in self.turns for call in calls if call.ran]

    @property
    def ran_last(self) -> list[CallRecord]:
        """The calls of the last turn that ran or failed."""
        return [call for call in self.turns[-1] if call.ran] if self.turns else []


async def play(sessions: Sessions, request: Request, site: str) -> Transcript:
    """Send the messages of a request in order; a message after a question in words answers the question."""
    session, transcript, started = new_id(), Transcript(), perf_counter()
    question: dict[str, Any] | None = None
    for message in request.say:
        words = message.replace("{site}", site)
        turn: UserInput = Reply(words, question["question_id"]) if question else Say(words)
        if question:
            transcript.turns.pop()  # the reply continues the turn
        last = await _play_turn(sessions, turn, session, transcript)
        question = last.question if isinstance(last, Asked) else None
        if question is None:  # the usage at the end of a continued turn includes the usage before its question
            transcript.usage += sum(last.packet.metrics.token_usage.values(), TokenUsage())
    if _has_offers(last) and request.expect.calls != 0 and not request.expect.asks:
        transcript.picked = True
        await _play_turn(sessions, Say("1"), session, transcript)
    transcript.seconds = perf_counter() - started
    return transcript


def _has_offers(last: Asked | Finished) -> bool:
    routing = last.packet.tool_routing if isinstance(last, Finished) else None
    return routing is not None and bool(routing.offered_calls)


async def _play_turn(sessions: Sessions, turn: UserInput, session: str, transcript: Transcript) -> Asked | Finished:
    """Run a turn to its answer, or to a question in words; approve all calls, and record the turn."""
    for _ in range(MAX_QUESTIONS):
        last = await _until_question_or_end(sessions, turn, session)
        if isinstance(last, Finished):
            break
        transcript.questions += 1
        if last.question["kind"] == "question":
            break
        requests = last.question["action_requests"]
        turn = Reply({"decisions": [{"type": "approve"} for _ in requests]}, last.question["question_id"])
    transcript.asks = isinstance(last, Asked)
    transcript.answers.append(
        _question_text(last.question) if isinstance(last, Asked) else last.packet.response.candidate
    )
    transcript.turns.append([*_call_records(last.packet)])
    return last


async def _until_question_or_end(sessions: Sessions, turn: UserInput, session: str) -> Asked | Finished:
    async with aclosing(run_turn(sessions, turn, session, CONTEXT)) as events:
        async for event in events:
            if isinstance(event, Asked | Finished):
                return event
    raise RequestError("the turn ended without an answer")


def _question_text(question: Mapping[str, Any]) -> str:
    return str(question.get("question") or question["action_requests"][0]["description"])


def _call_records(packet: CognitionPacket) -> Iterator[CallRecord]:
    routing = packet.tool_routing
    approved = {approval.call_id for approval in packet.governance.approvals if not approval.by}
    for call in routing.all_calls if routing else ():
        yield CallRecord(
            tool=call.tool_name,
            params=call.params,
            confidence=call.review_confidence,
            doubted=call.review_confidence < CONTEXT.confidence_threshold,
            approved=call.call_id in approved,
            ran=call.result is not None and not call.result.dry_run,
            failed=call.result is not None and not call.result.success,
        )
