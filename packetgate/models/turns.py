"""Time limits of model requests. If an endpoint does not answer, the turn does not ask it again.

If an endpoint fails repeatedly, all turns skip it for `SKIP_S` seconds.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from math import inf
from time import monotonic

from packetgate.models.transport import (
    TIMEOUT_ADVICE,
    endpoint_label,
    is_unanswered,
    model_label,
    status_of,
    timeout_of,
)
from packetgate.state.errors import DecisionError, NotAskedError

FAILURES, SKIP_S = 3, 30.0
"""Number of consecutive failures after which an endpoint is skipped, and for how many seconds."""
BUDGET = "the turn's time"
_MAX_TURNS = 1_000
STREAM_S = 120.0
"""Shortest time limit of a streamed answer, in seconds."""


@dataclass
class _TurnBudget:
    """The time budget of one turn."""

    budget_s: float
    spent_s: float = 0.0
    skipped: set[str] = field(default_factory=set)
    """Endpoints and models that this turn does not ask again."""

    @property
    def left_s(self) -> float:
        """Seconds left."""
        return self.budget_s - self.spent_s


@dataclass(frozen=True)
class Limit:
    """The deadline of one request, and the advice after a timeout."""

    deadline: float | None = None
    """The deadline on the clock of `time.monotonic`; None: no limit."""
    turn: _TurnBudget | None = None
    """The turn whose budget sets the deadline; None: the model's timeout sets it."""

    @property
    def ended_turn(self) -> bool:
        """Whether the turn's time is over."""
        return self.turn is not None and self.deadline is not None and monotonic() >= self.deadline

    def advice(self) -> str:
        """Return what the user can do after a timeout."""
        return _advice(self.turn) if self.turn and self.ended_turn else TIMEOUT_ADVICE


@dataclass
class _Breaker:
    failures: int = 0
    skip_until: float = 0.0


_turns: dict[str, _TurnBudget] = {}
_breakers: dict[str, _Breaker] = {}
_turn: ContextVar[_TurnBudget | None] = ContextVar("turn", default=None)


@contextmanager
def turn_budget(packet_id: str, budget_s: float) -> Iterator[None]:
    """Limit the model requests within the block by the turn's time budget."""
    turn = _turns.setdefault(packet_id, _TurnBudget(budget_s))
    while len(_turns) > _MAX_TURNS:
        del _turns[next(iter(_turns))]
    token = _turn.set(turn)
    try:
        yield
    finally:
        _turn.reset(token)


@contextmanager
def limited_request(chat: object, *, streamed: bool = False, double_timeout: bool = False) -> Iterator[Limit]:
    """Limit one request to an endpoint, and yield the limit. Models in this process have no limit.

    Args:
        streamed: the answer arrives in pieces.
        double_timeout: double the time limit.

    Raises:
        NotAskedError: the endpoint did not answer earlier in this turn.
        DecisionError: the endpoint is skipped after repeated failures, or the turn's time budget is used up.
    """
    timeout, label, where = timeout_of(chat), model_label(chat), endpoint_label(chat)
    if timeout is None:
        yield Limit()
        return
    turn, breaker = _turn.get() or _TurnBudget(inf), _breakers.setdefault(where, _Breaker())
    if turn.skipped & {label, where, BUDGET}:
        raise NotAskedError(f"{label} was not asked again in this turn")
    begun = monotonic()
    if breaker.failures >= FAILURES and begun < breaker.skip_until:
        turn.skipped.add(where)
        raise DecisionError(
            f"{label} is skipped for {breaker.skip_until - begun:.0f} s, because "
            f"{breaker.failures} requests in a row had no answer: check the server"
        )
    limit = _limit(label, 2 * timeout if double_timeout else timeout, turn, streamed=streamed)
    try:
        yield limit
    except DecisionError as error:
        if is_unanswered(error.__cause__) and limit.ended_turn:
            turn.skipped.add(BUDGET)
        elif is_unanswered(error.__cause__):
            breaker.failures, breaker.skip_until = breaker.failures + 1, monotonic() + SKIP_S
            turn.skipped.add(where)
        elif status_of(error.__cause__) == 401:
            turn.skipped.add(label)
        raise
    else:
        breaker.failures = 0
    finally:
        turn.spent_s += monotonic() - begun


def skip_model(label: str) -> None:
    """Do not ask this model again in this turn."""
    if turn := _turn.get():
        turn.skipped.add(label)


def _limit(label: str, timeout: float, turn: _TurnBudget, *, streamed: bool) -> Limit:
    if turn.left_s <= 0:
        turn.skipped.add(BUDGET)
        raise DecisionError(f"{label} was not asked, because the turn's time budget is used up: {_advice(turn)}")
    limit = max(timeout, STREAM_S) if streamed else timeout  # users see the progress of a stream
    if limit <= turn.left_s:
        return Limit(monotonic() + limit)
    return Limit(monotonic() + turn.left_s, turn)


def _advice(turn: _TurnBudget) -> str:
    return f"a turn waits at most {turn.budget_s:g} s for its models: raise turn_budget_s, or use a faster model"
