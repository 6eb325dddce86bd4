"""The tool routing section: which calls a turn wants, how they were judged, and what became of them."""

from enum import StrEnum
from typing import Literal

from pydantic import Field, JsonValue

from state.base import Confidence, ConfidenceSource, Section, new_id


class Risk(StrEnum):
    """What a tool may do to the world, from harmless to dangerous."""

    READ = "read"
    WRITE = "write"
    EXECUTE = "execute"

    @property
    def severity(self) -> int:
        """Position on the scale: 0 for read, 2 for execute."""
        return list(Risk).index(self)


class ToolExecutionStatus(StrEnum):
    """Where a call stands. Only `EXECUTED` means that the tool did its work."""

    PENDING = "pending"
    AWAITING_CONFIDENCE = "awaiting_confidence"
    AWAITING_APPROVAL = "awaiting_approval"
    APPROVED = "approved"
    EXECUTED = "executed"
    FAILED = "failed"
    SKIPPED = "skipped"
    USER_DENIED = "user_denied"
    UNKNOWN = "unknown"
    """It started, and whether it finished cannot be known."""

    @property
    def awaits_user(self) -> bool:
        """Whether the call waits for the user's word."""
        return self in {ToolExecutionStatus.AWAITING_CONFIDENCE, ToolExecutionStatus.AWAITING_APPROVAL}


class ToolResult(Section):
    """What a tool call came to."""

    success: bool
    output: str = ""
    """The text of the tool's answer; what is not text is named in brackets."""
    structured: dict[str, JsonValue] | None = None
    """The tool's structured content, where it says more than `output`."""
    error: str | None = None
    execution_time_ms: float = 0.0
    dry_run: bool = False
    """True when the tool only told what it would do."""
    truncated: bool = False


class ToolCall(Section):
    """One call a turn wants to make."""

    call_id: str = Field(default_factory=new_id)
    tool_name: str
    """Canonical name: `server.tool`."""
    params: dict[str, JsonValue] = {}
    risk: Risk = Risk.WRITE
    provenance: dict[str, str] = {}
    """Where each argument came from: `user`, `default`, `model`, or `tool:NAME`."""
    selection_reasoning: str = ""
    selection_confidence: Confidence = 0.0
    selection_confidence_source: ConfidenceSource = ConfidenceSource.RULE
    review_confidence: Confidence = 0.0
    review_confidence_source: ConfidenceSource = ConfidenceSource.RULE
    review_reasoning: str = ""
    status: ToolExecutionStatus = ToolExecutionStatus.PENDING
    result: ToolResult | None = None

    def same_call(self, other: "ToolCall") -> bool:
        """Whether both would do the same thing."""
        return self.tool_name == other.tool_name and self.params == other.params


class Alternative(Section):
    """A tool that could also have served."""

    tool_name: str
    reason: str = ""


class Correction(Section):
    """What was wrong with a wanted call, in words a model can act on."""

    tool_name: str
    problem: str
    """`unknown_tool`, `off_palette`, `unknown_parameter`, `missing_parameter`, `invalid_value` or `wrong_kind`; of what
    can be mended, `alias`, `wrapper`, `misspelt_parameter` or `coerced`.
    """
    message: str
    mended: bool = False
    """Whether the call was mended so: then nothing is left to object to."""
    better_tool: str = ""
    """Canonical name of the tool to call instead, where one is known."""


class ToolRouting(Section):
    """A turn's tool routing. None on the packet until the turn needs a tool."""

    needs_tool: bool = True
    routing_requested: bool = True
    outcome: Literal["pending", "call", "none", "clarify", "describe", "miss"] = "pending"
    """What the pass's last selection came to; a miss is a tool that was not on the palette, or none that would do."""
    calls: tuple[ToolCall, ...] = ()
    """The calls of this pass; several when they do not depend on each other."""
    past_calls: tuple[ToolCall, ...] = ()
    """The calls of this turn's earlier passes, oldest first."""
    alternative_tools: tuple[Alternative, ...] = ()
    corrections: tuple[Correction, ...] = ()
    objections: tuple[str, ...] = ()
    """The better tools that objections of this turn named; whoever insists on another is let through."""
    suggestions: tuple[str, ...] = ()
    """Canonical names near to what was wanted, when the wanted tool does not exist."""
    missed_tools: tuple[str, ...] = ()
    """Names selected off the palette, oldest first."""
    widened: bool = False
    """Whether a miss has widened the palette: the next one ends the pass."""
    described_tools: tuple[str, ...] = ()
    """Tools whose full description the selection asked for."""
    describe_rounds: int = 0
    question: str | None = None
    """What selection needs to know from the user."""
    pass_status: ToolExecutionStatus = ToolExecutionStatus.PENDING
    """How a pass without calls ended."""
    note: str = ""
    """Why the pass ended as it did, when no call tells it."""
    reinjection_count: int = Field(default=0, ge=0)
    max_reinjections: int = Field(default=3, ge=0)

    @property
    def all_calls(self) -> tuple[ToolCall, ...]:
        """Every call of the turn, oldest first."""
        return self.past_calls + self.calls

    @property
    def selected_tool(self) -> str | None:
        """The first call's tool."""
        return self.calls[0].tool_name if self.calls else None

    @property
    def execution_status(self) -> ToolExecutionStatus:
        """The first call's status; of a pass without calls, how the pass ended."""
        return self.calls[0].status if self.calls else self.pass_status

    @property
    def execution_result(self) -> ToolResult | None:
        """The first call's result."""
        return self.calls[0].result if self.calls else None

    @property
    def capped(self) -> bool:
        """Whether every reinjection is used up."""
        return self.reinjection_count >= self.max_reinjections
