"""Events of stages on LangGraph's custom stream; they serialise to JSON.

In JSON, a field has the name of OpenTelemetry's conventions for GenAI, if they have an attribute for it.
"""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, TypeAdapter

from packetgate.state.base import Section, TokenUsage
from packetgate.state.sections import Reflection

EVENT_VERSION = 2
"""Version of the events; incremented if a field changes its meaning or is removed. Readers ignore unknown fields."""


class _StageEvent(Section):
    model_config = ConfigDict(extra="ignore", validate_by_name=True, validate_by_alias=True, serialize_by_alias=True)

    version: int = EVENT_VERSION
    stage: str
    session_id: str = Field(default="", alias="gen_ai.conversation.id")
    packet_id: str = ""
    """Empty, like `session_id`, until the packet is opened."""


class StageStarted(_StageEvent):
    """A stage begins."""

    type: Literal["stage_started"] = "stage_started"


class _StageEnd(_StageEvent):
    duration_ms: float = 0.0
    input_tokens: int = Field(default=0, alias="gen_ai.usage.input_tokens")
    output_tokens: int = Field(default=0, alias="gen_ai.usage.output_tokens")
    cached_tokens: int = Field(default=0, alias="gen_ai.usage.cache_read.input_tokens")
    thought_tokens: int = Field(default=0, alias="gen_ai.usage.reasoning.output_tokens")

    @property
    def usage(self) -> TokenUsage:
        """The tokens that the stage spent."""
        return TokenUsage(**{name: getattr(self, name) for name in TokenUsage.model_fields})


class StageFinished(_StageEnd):
    """A stage has ended."""

    type: Literal["stage_finished"] = "stage_finished"
    decisions: tuple[Reflection, ...] = ()
    """The reflections that the stage added to the packet."""


class StageStopped(_StageEnd):
    """A stage has ended without a decision: the stage waits for the user and will run again, or the stage failed."""

    type: Literal["stage_stopped"] = "stage_stopped"
    reason: Literal["interrupt", "error"]
    error: str = Field(default="", alias="error.type")


StageEvent = StageStarted | StageFinished | StageStopped

_EVENTS: TypeAdapter[StageEvent] = TypeAdapter(Annotated[StageEvent, Field(discriminator="type")])


def read_event(data: object) -> StageEvent:
    """Read an event from the stream: an event, its JSON or its decoded JSON.

    Raises:
        ValidationError: the data is not an event.
    """
    return _EVENTS.validate_json(data) if isinstance(data, str | bytes) else _EVENTS.validate_python(data)
