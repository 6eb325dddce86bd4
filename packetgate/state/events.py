"""What the graph tells of a stage on LangGraph's custom stream: typed, and safe to send as JSON."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, TypeAdapter

from packetgate.state.base import Section, TokenUsage
from packetgate.state.sections import Reflection, StageError

EVENT_VERSION = 1
"""Raised when a field changes its meaning or goes. A new field does not raise it: readers pass over it."""

Mode = Literal["model", "reflex", "default"]
"""Who decided at a stage; `default` where there was nothing to decide and rules were followed."""


class _StageEvent(Section):
    model_config = ConfigDict(extra="ignore")

    version: int = EVENT_VERSION
    stage: str
    session_id: str = ""
    packet_id: str = ""
    """Empty, as `session_id` is, until the packet is opened."""


class StageStarted(_StageEvent):
    """A stage has begun."""

    type: Literal["stage_started"] = "stage_started"


class StageFinished(_StageEvent):
    """A stage has ended: what it decided, what it changed, and what it cost. Tools are given by their names."""

    type: Literal["stage_finished"] = "stage_finished"
    mode: Mode = "default"
    is_fallback: bool = False
    """True when a model should have decided and the reflex decider did."""
    decisions: tuple[Reflection, ...] = ()
    duration_ms: float = 0.0
    usage: TokenUsage = TokenUsage()
    """Tokens of the models that the stage asked."""
    loaded: tuple[str, ...] = ()
    """The palette, in its order, where the stage chose one."""
    added: tuple[str, ...] = ()
    """Of the palette, what was not on it before the stage."""
    removed: tuple[str, ...] = ()
    """What was on the palette before the stage and no longer is: last turn's, where the stage opens a packet."""
    shift: str = ""
    """How the conversation's type or subject has changed, where the stage found that out."""
    used: tuple[str, ...] = ()
    """Tools that did their work."""
    missed: tuple[str, ...] = ()
    """Names selected off the palette, as the selection wrote them."""
    escalated: tuple[str, ...] = ()
    """Tools whose calls now wait for the user."""
    escalation: Literal["question", "confidence", "approval"] | None = None
    """Why the turn now waits for the user."""
    calls: dict[str, int] = {}
    """How many calls the stage put into each `ToolExecutionStatus`."""
    corrections: tuple[str, ...] = ()
    """The `problem` of each correction made."""
    reinjection_count: int = 0
    """Of the turn so far."""
    violations: int = 0
    """Pieces of tool markup cut out of the answer."""
    errors: tuple[StageError, ...] = ()
    """What went wrong without ending the turn."""


class StageStopped(_StageEvent):
    """A stage has ended without a decision: it waits for the user and will start anew, or it broke."""

    type: Literal["stage_stopped"] = "stage_stopped"
    reason: Literal["interrupt", "error"]
    error: str = ""
    """The class of the error."""
    duration_ms: float = 0.0
    usage: TokenUsage = TokenUsage()


StageEvent = StageStarted | StageFinished | StageStopped

_EVENTS: TypeAdapter[StageEvent] = TypeAdapter(Annotated[StageEvent, Field(discriminator="type")])


def read_event(data: object) -> StageEvent:
    """Read an event as the stream carries it: itself in the graph's own process; from a server JSON, or its object.

    Raises:
        ValidationError: it is no such event.
    """
    return _EVENTS.validate_json(data) if isinstance(data, str | bytes) else _EVENTS.validate_python(data)
