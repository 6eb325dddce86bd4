"""What all packet sections share."""

from datetime import UTC, datetime
from enum import StrEnum
from time import perf_counter
from typing import Annotated, Any, Self
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field

Confidence = Annotated[float, Field(ge=0.0, le=1.0)]
"""How sure a decision is: 0 to 1."""


class ConfidenceSource(StrEnum):
    """Where a confidence comes from."""

    MEASURED = "token_probability"
    """Read from the probabilities of the tokens that made the choice."""
    ENDPOINT = "decision_probability"
    """The probability that a decision endpoint gave."""
    CALIBRATED = "calibrated"
    """A probability that was fitted to what came of such decisions."""
    STATED = "stated"
    """A number that the model wrote, which tends to be too high."""
    RULE = "rule"
    """A score that a rule gave: no model judged, and nobody measured how often it is right."""
    UNJUDGED = "unjudged"
    """Nobody judged: the number lets a decision pass that was made elsewhere, and is not shown."""


class ErrorType(StrEnum):
    """Why a tool call has no good result."""

    REFUSED = "refused"
    """It may not run: by its name, its arguments, a rule, or for lack of an approval."""
    UNAVAILABLE = "unavailable"
    """Its server is not there, or refused the call. It did not run."""
    TIMEOUT = "timeout"
    """It was sent, and no answer came in time. It may have run."""
    NO_ANSWER = "no_answer"
    """It was sent, and no usable answer came. It may have run."""
    TOOL_ERROR = "tool_error"
    """The tool, or its server, answered with an error."""
    INTERNAL = "internal"
    """Packetgate itself failed."""


def shown_confidence(value: Confidence | None, source: ConfidenceSource | None) -> str:
    """Return a confidence as people read it; empty where nobody was sure of anything, or judged.

    `0.93` was measured or calibrated, `~0.93` the model stated, `score 0.93` a rule gave.
    """
    marks = {ConfidenceSource.STATED: "~", ConfidenceSource.RULE: "score "}
    if value is None or source is None or source is ConfidenceSource.UNJUDGED:
        return ""
    return f"{marks.get(source, '')}{value:.2f}"


class Section(BaseModel):
    """Frozen data: a node returns a changed copy, it never edits what it was given.

    What may change, and how, are methods of each section with typed arguments; they come down to `_changed`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    def _changed(self, **fields: Any) -> Self:
        """Return a copy with other values, validated; what stays is the same object.

        Raises:
            ValidationError: there is no such field, or it does not take that value.
        """
        checked = vars(type(self).model_validate(vars(self) | fields))
        return self.model_copy(update=dict(zip(fields, map(checked.__getitem__, fields), strict=True)))


class TokenUsage(Section):
    """Tokens that model calls took."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """Of the input, how many the model still knew from an earlier prompt."""
    thought_tokens: int = 0
    """Of the output, how many were thoughts, as told or estimated."""

    def having_thought(self, tokens: int) -> "TokenUsage":
        """Return it with so many of the output as thoughts."""
        return self._changed(thought_tokens=tokens) if tokens else self

    def since(self, earlier: "TokenUsage") -> "TokenUsage":
        """Return what was used after `earlier`."""
        return TokenUsage(**{name: value - getattr(earlier, name) for name, value in self})

    def __add__(self, other: "TokenUsage") -> "TokenUsage":
        """Return both together."""
        return TokenUsage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            thought_tokens=self.thought_tokens + other.thought_tokens,
        )


def now() -> datetime:
    """Return the current time, aware, in UTC."""
    return datetime.now(UTC)


def ms_since(started: float) -> float:
    """Return the milliseconds since `time.perf_counter()` was `started`."""
    return round((perf_counter() - started) * 1000, 3)


def storable(text: str) -> str:
    """Return a text with what no database takes replaced: NUL, and half a surrogate pair."""
    return text.encode(errors="replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")


def is_storable(value: Any) -> bool:
    """Whether checkpoints take a JSON value: each whole number is of 64 bits, and each name without half a pair."""
    if isinstance(value, dict):
        named = not any("\ud800" <= char <= "\udfff" for name in value for char in str(name))
        return named and all(is_storable(one) for one in value.values())
    if isinstance(value, list | tuple):
        return all(is_storable(one) for one in value)
    return not isinstance(value, int) or -(2**63) <= value < 2**64


def new_id() -> str:
    """Return a fresh identifier: 32 hexadecimal digits."""
    return uuid4().hex
