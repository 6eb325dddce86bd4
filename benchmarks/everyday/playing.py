"""One request played to its end by a person who approves, as a connector would play it."""

from collections.abc import Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from benchmarks.everyday.asked import Asked as Request
from packetgate.connectors.sessions import Sessions
from packetgate.connectors.turn import Asked, Finished, Reply, Say, UserInput, run_turn
from packetgate.state.base import TokenUsage, new_id
from packetgate.state.context import RoutingContext
from packetgate.state.errors import RequestError
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import ToolCall

CONTEXT = RoutingContext(allow_write_tools=True, allow_execute_tools=True)
MOST_QUESTIONS = 8
"""Most approvals in a turn: more than any needs."""


@dataclass(frozen=True)
class Made:
    """A call that was put to a person, or ran, or both."""

    tool: str
    params: Mapping[str, Any]
    confidence: float
    """The review's."""
    doubted: bool
    """Whether it was below the threshold, so that the person was asked whether it is meant at all."""
    approved: bool
    """Whether a person was asked about it."""
    ran: bool
    failed: bool


@dataclass
class Played:
    """What came of one request."""

    answers: list[str] = field(default_factory=list)
    """One a message; where it ends in a question, the question."""
    turns: list[list[Made]] = field(default_factory=list)
    """The calls of each turn."""
    questions: int = 0
    """How often the person was asked, for words or for an approval."""
    asks: bool = False
    """Whether it ends in a question."""
    picked: bool = False
    """Whether nothing was called, and the person picked the first of the offered commands."""
    spent: TokenUsage = field(default_factory=TokenUsage)
    seconds: float = 0.0

    @property
    def answer(self) -> str:
        """The last thing that the person is shown."""
        return self.answers[-1] if self.answers else ""

    @property
    def ran(self) -> list[Made]:
        """The calls that ran, or were tried, in all turns."""
        return [call for calls in self.turns for call in calls if call.ran]

    @property
    def ran_last(self) -> list[Made]:
        """The calls of the last turn that ran, or were tried."""
        return [call for call in self.turns[-1] if call.ran] if self.turns else []


async def played(sessions: Sessions, request: Request, site: str) -> Played:
    """Say what the request says, message by message; a message after a question in words is its answer."""
    session, told, begun = new_id(), Played(), perf_counter()
    question: dict[str, Any] | None = None
    for message in request.say:
        words = message.replace("{site}", site)
        turn: UserInput = Reply(words, question["question_id"]) if question else Say(words)
        last = await _turned(sessions, turn, session, told)
        if question:
            told.turns.pop()  # the same turn goes on
        question = last.question if isinstance(last, Asked) else None
        told.asks = question is not None
        told.answers.append(_shown(question) if question else last.packet.response.candidate)
        told.turns.append([*_made(last.packet)])
        if question is None:  # a turn that goes on has what it took so far among what it took at its end
            told.spent += sum(last.packet.metrics.token_usage.values(), TokenUsage())
    if _offers(last) and request.expect.calls != 0 and not request.expect.asks:
        told.picked = True
        last = await _turned(sessions, Say("1"), session, told)
        told.asks = isinstance(last, Asked)
        told.answers.append(_shown(last.question) if isinstance(last, Asked) else last.packet.response.candidate)
        told.turns.append([*_made(last.packet)])
    told.seconds = perf_counter() - begun
    return told


def _offers(last: Asked | Finished) -> bool:
    routing = last.packet.tool_routing if isinstance(last, Finished) else None
    return routing is not None and bool(routing.offered_calls)


async def _turned(sessions: Sessions, turn: UserInput, session: str, told: Played) -> Asked | Finished:
    """Run a turn to its answer, or to a question that wants words; all that is to be approved, is."""
    for _ in range(MOST_QUESTIONS):
        last = await _up_to_a_word(sessions, turn, session)
        if isinstance(last, Finished):
            break
        told.questions += 1
        if last.question["kind"] == "question":
            break
        requests = last.question["action_requests"]
        turn = Reply({"decisions": [{"type": "approve"} for _ in requests]}, last.question["question_id"])
    return last


async def _up_to_a_word(sessions: Sessions, turn: UserInput, session: str) -> Asked | Finished:
    async with aclosing(run_turn(sessions, turn, session, CONTEXT)) as events:
        async for event in events:
            if isinstance(event, Asked | Finished):
                return event
    raise RequestError("the turn ended without an answer")


def _shown(question: Mapping[str, Any]) -> str:
    return str(question.get("question") or question["action_requests"][0]["description"])


def _made(packet: CognitionPacket) -> Iterator[Made]:
    routing = packet.tool_routing
    approved = {one.call_id for one in packet.governance.approvals if not one.by}
    for call in routing.all_calls if routing else ():
        yield _of(call, approved=call.call_id in approved)


def _of(call: ToolCall, *, approved: bool) -> Made:
    ran = call.result is not None and not call.result.dry_run
    return Made(
        tool=call.tool_name,
        params=call.params,
        confidence=call.review_confidence,
        doubted=call.review_confidence < CONTEXT.confidence_threshold,
        approved=approved,
        ran=ran,
        failed=call.result is not None and not call.result.success,
    )
