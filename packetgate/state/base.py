"""Shared parts of all packet sections."""

from datetime import UTC, datetime
from enum import StrEnum
from time import perf_counter
from typing import Annotated, Any, Self
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field

Confidence = Annotated[float, Field(ge=0.0, le=1.0)]


class ConfidenceSource(StrEnum):
    """How a confidence was obtained."""

    MEASURED = "token_probability"
    ENDPOINT = "decision_probability"
    CALIBRATED = "calibrated"
    """Fitted to recorded outcomes."""
    STATED = "stated"
    """Written by the model; tends to be too high."""
    RULE = "rule"
    """The score of a rule; not measured against outcomes."""
    UNJUDGED = "unjudged"
    """A placeholder that lets an external decision pass; never shown."""


class ErrorType(StrEnum):
    """Why a tool call has no usable result."""

    REFUSED = "refused"
    """The call is not allowed: because of its name, its arguments, a policy rule, or a missing approval."""
    UNAVAILABLE = "unavailable"
    """The server is down or refused the call; the call did not run."""
    TIMEOUT = "timeout"
    """The call was sent, but no answer arrived in time. The call may have run."""
    NO_ANSWER = "no_answer"
    """The call was sent, but no usable answer arrived. The call may have run."""
    TOOL_ERROR = "tool_error"
    """The tool or its server answered with an error."""
    INTERNAL = "internal"
    """Packetgate itself failed."""


def shown_confidence(value: Confidence | None, source: ConfidenceSource | None) -> str:
    """Return `0.93` (measured or calibrated), `~0.93` (stated), `score 0.93` (rule), or nothing if unjudged."""
    marks = {ConfidenceSource.STATED: "~", ConfidenceSource.RULE: "score "}
    if value is None or source is None or source is ConfidenceSource.UNJUDGED:
        return ""
    return f"{marks.get(source, '')}{value:.2f}"


class Section(BaseModel):
    """Immutable data. Nodes return changed copies.

    A stored section may have fields of a newer version: they are ignored. For data from a user or the user's code,
    unknown fields are refused with `extra="forbid"`.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    def changed(self, **fields: Any) -> Self:
        """Return a copy with these fields replaced and validated; other fields keep their objects.

        Raises:
            ValidationError: a field does not exist, or does not accept its value.
        """
        checked = vars(type(self).model_validate(vars(self) | fields, extra="forbid"))
        return self.model_copy(update={name: checked[name] for name in fields})


class TokenUsage(Section):
    """Tokens of model calls."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """Part of the input that came from the model's prompt cache."""
    thought_tokens: int = 0
    """Part of the output that was thoughts, reported or estimated."""

    def since(self, earlier: "TokenUsage") -> "TokenUsage":
        """Return the usage after `earlier`."""
        return TokenUsage(**{name: value - getattr(earlier, name) for name, value in self})

    def __add__(self, other: "TokenUsage") -> "TokenUsage":
        """Return the sum."""
        return TokenUsage(**{name: value + getattr(other, name) for name, value in self})


def now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def ms_since(started: float) -> float:
    """Return the milliseconds since `time.perf_counter()` returned `started`."""
    return round((perf_counter() - started) * 1000, 3)


def storable(text: str) -> str:
    """Return a text with NUL and lone surrogates replaced: databases refuse them."""
    return text.encode(errors="replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")


def is_storable(value: Any) -> bool:
    """Whether a checkpoint can store a JSON value: integers of 64 bits, no lone surrogates in names."""
    if isinstance(value, dict):
        valid_names = not any("\ud800" <= char <= "\udfff" for name in value for char in str(name))
        return valid_names and all(is_storable(item) for item in value.values())
    if isinstance(value, list | tuple):
        return all(is_storable(item) for item in value)
    return not isinstance(value, int) or -(2**63) <= value < 2**64


def new_id() -> str:
    """Return a random identifier of 32 hexadecimal digits."""
    return uuid4().hex
