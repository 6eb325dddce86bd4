"""How long a turn may wait for endpoints, and what it gave up: one that is not there is not asked again.

An endpoint that fails turn after turn is left alone for a while, whoever asks.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from math import inf
from time import monotonic

from packetgate.models.transport import (
    TIMEOUT_WAY_OUT,
    endpoint_label,
    is_absent,
    model_label,
    refuses_key,
    requested_wait,
    timeout_of,
)
from packetgate.state.errors import DecisionError, NotAskedError

FAILURES, REST_S = 3, 30.0
"""Failed requests in a row after which an endpoint is left alone, and for how many seconds."""
BUDGET = "the turn's time"
REMEMBERED = 1_000
STREAM_S = 120.0
"""Longest streamed answer outside of a turn, in seconds."""


@dataclass
class Turn:
    """One turn's patience."""

    budget_s: float
    spent_s: float = 0.0
    given_up: set[str] = field(default_factory=set)
    """Endpoints and models that this turn does not ask again."""

    @property
    def left_s(self) -> float:
        """The seconds that it may still wait."""
        return self.budget_s - self.spent_s


@dataclass(frozen=True)
class Limit:
    """How long a request may take in all."""

    deadline: float | None = None
    """By `time.monotonic`; None: no limit."""
    turn: Turn | None = None
    """Whose budget sets the deadline; None: the model's timeout does."""

    @property
    def ended_turn(self) -> bool:
        """Whether the turn's time is over."""
        return self.turn is not None and self.deadline is not None and monotonic() >= self.deadline

    def way_out(self) -> str:
        """Return what to do where it was not enough."""
        return _way_out(self.turn) if self.turn and self.ended_turn else TIMEOUT_WAY_OUT


@dataclass
class _Breaker:
    failures: int = 0
    rests_until: float = 0.0


_turns: dict[str, Turn] = {}
_breakers: dict[str, _Breaker] = {}
_turn: ContextVar[Turn | None] = ContextVar("turn", default=None)
_deadline: ContextVar[float | None] = ContextVar("deadline", default=None)


@contextmanager
def in_turn(packet_id: str, budget_s: float) -> Iterator[None]:
    """Count what is asked within to a turn, which may come back to it."""
    turn = _turns.setdefault(packet_id, Turn(budget_s))
    while len(_turns) > REMEMBERED:
        del _turns[next(iter(_turns))]
    token = _turn.set(turn)
    try:
        yield
    finally:
        _turn.reset(token)


@contextmanager
def attempt(chat: object, *, streamed: bool = False, twice: bool = False) -> Iterator[Limit]:
    """Around one request to an endpoint; yields how long it may take. A model in this process is not limited.

    Args:
        streamed: whether the answer shows that it goes on.
        twice: whether it may take twice as long as others, as an answer in words does that comes at once.

    Raises:
        NotAskedError: this turn has found the endpoint absent, and told so.
        DecisionError: the endpoint rests, or the turn's time is used up.
    """
    timeout, label, where = timeout_of(chat), model_label(chat), endpoint_label(chat)
    if timeout is None:
        yield Limit()
        return
    turn, breaker = _turn.get() or Turn(inf), _breakers.setdefault(where, _Breaker())
    if turn.given_up & {label, where, BUDGET}:
        raise NotAskedError(f"{label} was not asked again in this turn")
    begun = monotonic()
    if breaker.failures >= FAILURES and begun < breaker.rests_until:
        turn.given_up.add(where)
        raise DecisionError(
            f"{label} is left alone for {breaker.rests_until - begun:.0f} s, as nobody answered there "
            f"{breaker.failures} times in a row: check the server"
        )
    limit, before = _limit(label, 2 * timeout if twice else timeout, turn, streamed=streamed), _deadline.get()
    _deadline.set(limit.deadline)
    try:
        yield limit
    except DecisionError as error:
        if is_absent(error.__cause__) and limit.ended_turn:
            turn.given_up.add(BUDGET)
        elif is_absent(error.__cause__):
            breaker.failures, breaker.rests_until = breaker.failures + 1, monotonic() + REST_S
            turn.given_up.add(where)
        elif refuses_key(error.__cause__) or requested_wait(error.__cause__) > seconds_left():
            turn.given_up.add(label)
        raise
    else:
        breaker.failures = 0
    finally:
        _deadline.set(before)  # `reset` refuses where a stream is closed by another task than began it
        turn.spent_s += monotonic() - begun


def give_up(label: str) -> None:
    """Have the turn that is under way not ask a model again."""
    if turn := _turn.get():
        turn.given_up.add(label)


def seconds_left() -> float:
    """Return how long the request that is under way may still take."""
    deadline = _deadline.get()
    return inf if deadline is None else deadline - monotonic()


def _limit(label: str, timeout: float, turn: Turn, *, streamed: bool) -> Limit:
    if turn.left_s <= 0:
        turn.given_up.add(BUDGET)
        raise DecisionError(f"{label} was not asked, as the turn's time is used up: {_way_out(turn)}")
    own = max(timeout, STREAM_S) if streamed else timeout  # a stream shows that it goes on
    if own <= turn.left_s:
        return Limit(monotonic() + own)
    return Limit(monotonic() + turn.left_s, turn)


def _way_out(turn: Turn) -> str:
    return f"a turn waits {turn.budget_s:g} s for its models: raise turn_budget_s, or use a faster model"
