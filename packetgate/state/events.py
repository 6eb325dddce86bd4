"""Events of stages on LangGraph's custom stream; they serialise to JSON."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, TypeAdapter

from packetgate.state.base import Section, TokenUsage
from packetgate.state.sections import Reflection, StageError

EVENT_VERSION = 1
"""Version of the events; incremented if a field changes its meaning or is removed. Readers ignore unknown fields."""

Mode = Literal["model", "reflex", "default"]
"""Who decided at a stage; `default`: a rule."""


class _StageEvent(Section):
    model_config = ConfigDict(extra="ignore")

    version: int = EVENT_VERSION
    stage: str
    session_id: str = ""
    packet_id: str = ""
    """Empty, like `session_id`, until the packet is opened."""


class StageStarted(_StageEvent):
    """A stage begins."""

    type: Literal["stage_started"] = "stage_started"


class StageFinished(_StageEvent):
    """A stage has ended: its decisions, changes and cost. Tools are given by name."""

    type: Literal["stage_finished"] = "stage_finished"
    mode: Mode = "default"
    is_fallback: bool = False
    """Whether reflex decided in place of a model."""
    decisions: tuple[Reflection, ...] = ()
    duration_ms: float = 0.0
    usage: TokenUsage = TokenUsage()
    loaded: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    """Tools of `loaded` that were not on the palette before."""
    removed: tuple[str, ...] = ()
    shift: str = ""
    used: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()
    """Selected names that are not on the palette, as the model wrote them."""
    escalated: tuple[str, ...] = ()
    """Tools whose calls now wait for the user."""
    escalation: Literal["question", "confidence", "approval"] | None = None
    """Why the turn now waits for the user."""
    calls: dict[str, int] = {}
    """Number of calls by new `ToolExecutionStatus`."""
    corrections: tuple[str, ...] = ()
    """The `problem` of each correction."""
    reinjection_count: int = 0
    violations: int = 0
    """Pieces of tool markup removed from the answer."""
    errors: tuple[StageError, ...] = ()


class StageStopped(_StageEvent):
    """A stage has ended without a decision: the stage waits for the user and will run again, or the stage failed."""

    type: Literal["stage_stopped"] = "stage_stopped"
    reason: Literal["interrupt", "error"]
    error: str = ""
    duration_ms: float = 0.0
    usage: TokenUsage = TokenUsage()


StageEvent = StageStarted | StageFinished | StageStopped

_EVENTS: TypeAdapter[StageEvent] = TypeAdapter(Annotated[StageEvent, Field(discriminator="type")])


def read_event(data: object) -> StageEvent:
    """Read an event from the stream: an event, its JSON or its decoded JSON.

    Raises:
        ValidationError: the data is not an event.
    """
    return _EVENTS.validate_json(data) if isinstance(data, str | bytes) else _EVENTS.validate_python(data)
