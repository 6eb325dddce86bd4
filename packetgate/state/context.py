"""Settings of one run."""

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from packetgate.state.errors import ConfigError, first_problem
from packetgate.state.routing import Risk

NO_TOOLS = ("-",)
"""A pattern that matches no canonical name."""
MAX_PERSONA_CHARS = 200_000
"""Maximum length of `persona`: chat clients send system prompts of tens of thousands of characters."""


class RoutingContext(BaseModel):
    """Settings of a run; LangGraph's runtime context. Studio shows them as a form."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    enabled: bool = Field(
        default=True, description="Whether tools are used. If not, requests are answered without tools."
    )
    review: Literal["all", "risky"] = Field(
        default="all",
        description="Calls that the prime model reviews: all, or all but local reads with only the user's words.",
    )
    persona: str = Field(
        default="",
        max_length=MAX_PERSONA_CHARS,
        description="Text before the answer prompt, such as the assistant's role and style.",
    )
    selection_temperature: float = Field(default=0.15, ge=0.0, le=2.0, description="Temperature of tool selection.")
    selection_top_p: float = Field(default=0.9, gt=0.0, le=1.0, description="Nucleus sampling of tool selection.")
    selection_max_tokens: int = Field(default=500, ge=16, le=8192, description="Maximum tokens of a selection.")
    review_temperature: float = Field(default=0.3, ge=0.0, le=2.0, description="Temperature of the review.")
    review_max_tokens: int = Field(default=16, ge=1, le=8192, description="Maximum tokens of a review.")
    answer_max_tokens: int = Field(
        default=1_000, ge=16, le=32_768, description="Maximum tokens of the answer, without thoughts."
    )
    confidence_threshold: float = Field(
        default=0.7, ge=0.0, le=1.0, description="Minimum review confidence of a call that runs without a question."
    )
    max_reinjections: int = Field(
        default=3, ge=0, le=10, description="How often a turn may select tools again with its results."
    )
    max_parallel_calls: int = Field(default=4, ge=1, le=16, description="Maximum number of calls in one pass.")
    allow_write_tools: bool = Field(default=False, description="Allow tools that change things, after approval.")
    allow_execute_tools: bool = Field(default=False, description="Allow tools that execute commands, after approval.")
    on_low_confidence: Literal["ask", "skip"] = Field(
        default="ask", description="Whether a call below the threshold needs approval or is skipped."
    )
    ask_timeout_s: float = Field(
        default=86_400.0,
        gt=0.0,
        le=31_536_000.0,
        description="Seconds until a question and its calls expire; at most a year.",
    )
    allowed_tools: tuple[Annotated[str, Field(min_length=1)], ...] = Field(
        default=(), description="Patterns of the tools that may be used, such as notes.*; empty: all."
    )
    palette_size: int = Field(default=128, ge=1, le=256, description="Maximum number of tools on the palette.")
    palette_token_budget: int = Field(default=2_000, ge=100, le=100_000, description="Token budget of the palette.")

    @property
    def is_dry_run(self) -> bool:
        """Whether neither writes nor commands may run."""
        return not (self.allow_write_tools or self.allow_execute_tools)

    def allows(self, risk: Risk) -> bool:
        """Whether the switches allow calls of this risk."""
        switches = {Risk.WRITE: self.allow_write_tools, Risk.EXECUTE: self.allow_execute_tools}
        return switches.get(risk, True)

    def allows_tool(self, name: str) -> bool:
        """Whether the allow-list contains a canonical name."""
        return not self.allowed_tools or any(fnmatchcase(name, pattern) for pattern in self.allowed_tools)

    def restricted_by(self, base: "RoutingContext") -> "RoutingContext":
        """Return these settings, with each permission that they set at most as wide as in `base`."""
        values = {name: getattr(self, name) for name in self.model_fields_set}
        for name in values.keys() & STRICTER.keys():
            stricter = STRICTER[name](values[name], getattr(base, name))
            if stricter == values[name]:
                continue
            del values[name]
            if name in base.model_fields_set:
                values[name] = stricter
        return RoutingContext.model_validate(values)


def intersect_patterns(first: Sequence[str], second: Sequence[str]) -> tuple[str, ...]:
    """Return the intersection of two allow-lists; an empty list allows everything.

    Patterns that merely overlap, such as `ai.*` and `*.read`, are left out: the result is never too wide.
    """
    if not first or not second:
        return tuple(first or second)
    patterns = [pattern for pattern in first if any(_within(pattern, other) for other in second)]
    patterns += [pattern for pattern in second if any(_within(pattern, other) for other in first)]
    return tuple(dict.fromkeys(patterns)) or NO_TOOLS


def _within(inner: str, outer: str) -> bool:
    return inner == outer or (not {*"?["} & {*inner, *outer} and fnmatchcase(inner, outer))


STRICTER: dict[str, Callable[[Any, Any], Any]] = {
    "enabled": min,
    "review": lambda *values: "all" if "all" in values else "risky",
    "confidence_threshold": max,
    "max_reinjections": min,
    "max_parallel_calls": min,
    "allow_write_tools": min,
    "allow_execute_tools": min,
    "on_low_confidence": lambda *values: "skip" if "skip" in values else "ask",
    "ask_timeout_s": min,
    "allowed_tools": intersect_patterns,
}
"""Maps each setting that is a permission to a function that returns the stricter of two values."""


def routing_context(value: Any, default: "RoutingContext | None" = None) -> RoutingContext:
    """Return a run's settings from `runtime.context`, which is None, a dict (over HTTP) or a `RoutingContext`.

    Args:
        default: settings of a graph inside another graph, whose context may be anything.

    Raises:
        ConfigError: a setting does not exist, or does not accept its value.
    """
    if isinstance(value, RoutingContext):
        return value
    if default is not None and not (isinstance(value, dict) and value.keys() & RoutingContext.model_fields.keys()):
        return default
    try:
        return RoutingContext.model_validate({} if value is None else value)
    except ValidationError as error:
        problem = first_problem(error, within="context")
        raise ConfigError(f"{problem}; the settings of a run are {', '.join(RoutingContext.model_fields)}") from error
