"""The settings of one run, shown by Studio as a form."""

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from packetgate.state.errors import ConfigError, first_problem
from packetgate.state.routing import Risk

NOTHING = ("-",)
"""A pattern that no canonical name fits."""
MAX_PERSONA_CHARS = 200_000
"""Chat clients send system prompts of tens of thousands of characters."""


class RoutingContext(BaseModel):
    """How a run routes tools. Passed as LangGraph's runtime context."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    enabled: bool = Field(default=True, description="Route tools at all. Off: every request is only answered.")
    explain: bool = Field(
        default=False, description="Have the models write why they chose, how sure they are, and what else would do."
    )
    review: Literal["all", "risky"] = Field(
        default="all",
        description="What the prime model reviews: all calls, or not those that only read, here, in the user's words.",
    )
    persona: str = Field(
        default="",
        max_length=MAX_PERSONA_CHARS,
        description="Who answers, and how: put before the prompt of the answer.",
    )
    selection_temperature: float = Field(default=0.15, ge=0.0, le=2.0, description="Temperature of tool selection.")
    selection_top_p: float = Field(default=0.9, gt=0.0, le=1.0, description="Nucleus sampling of tool selection.")
    selection_max_tokens: int = Field(default=500, ge=16, le=8192, description="Longest selection, in tokens.")
    review_temperature: float = Field(default=0.3, ge=0.0, le=2.0, description="Temperature of the review.")
    review_max_tokens: int = Field(default=200, ge=16, le=8192, description="Longest review, in tokens.")
    answer_max_tokens: int = Field(
        default=1_000, ge=16, le=32_768, description="Longest answer, in tokens; thoughts have room beside it."
    )
    turn_budget_s: float = Field(
        default=120.0,
        ge=1.0,
        le=86_400.0,
        description="Seconds that a turn may wait for models at endpoints, in all; then it goes on without them.",
    )
    confidence_threshold: float = Field(
        default=0.7, ge=0.0, le=1.0, description="A call runs when its review confidence is at least this."
    )
    max_reinjections: int = Field(default=3, ge=0, le=10, description="How often a turn may come back for more tools.")
    max_parallel_calls: int = Field(default=4, ge=1, le=16, description="Most calls in one pass.")
    allow_write_tools: bool = Field(default=False, description="Let tools that change things run, after approval.")
    allow_execute_tools: bool = Field(default=False, description="Let tools that run commands run, after approval.")
    on_low_confidence: Literal["ask", "skip"] = Field(
        default="ask", description="What to do with a call below the threshold: ask the user, or skip it."
    )
    ask_timeout_s: float = Field(
        default=86_400.0,
        gt=0.0,
        le=31_536_000.0,
        description="Seconds until a question to the user lapses, and its calls with it; at most a year.",
    )
    allowed_tools: tuple[Annotated[str, Field(min_length=1)], ...] = Field(
        default=(), description="Patterns such as notes.*: only tools that fit one may be used; none given: all may."
    )
    palette_size: int = Field(default=128, ge=1, le=256, description="Most tools shown to selection in a turn.")
    palette_token_budget: int = Field(
        default=2_000, ge=100, le=100_000, description="Tokens the palette's tool texts may take."
    )

    @property
    def is_dry_run(self) -> bool:
        """Whether no tool that changes something or runs commands may run."""
        return not (self.allow_write_tools or self.allow_execute_tools)

    def allows(self, risk: Risk) -> bool:
        """Whether the switches let a call of this risk really run."""
        return {
            Risk.READ: True,
            Risk.WRITE: self.allow_write_tools,
            Risk.EXECUTE: self.allow_execute_tools,
        }[risk]

    def allows_tool(self, name: str) -> bool:
        """Whether a tool of this canonical name may be used at all."""
        return not self.allowed_tools or any(fnmatchcase(name, pattern) for pattern in self.allowed_tools)

    def no_wider_than(self, base: "RoutingContext") -> "RoutingContext":
        """Return these settings, but none that allows more than `base` does; what neither sets is left unset."""
        given = {name: getattr(self, name) for name in self.model_fields_set}
        for name in given.keys() & STRICTER.keys():
            stricter = STRICTER[name](given[name], getattr(base, name))
            if stricter == given[name]:
                continue
            del given[name]
            if name in base.model_fields_set:
                given[name] = stricter
        return RoutingContext.model_validate(given)


def in_both(some: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """Return patterns of tools that both allow; no patterns allow all.

    Of two that merely overlap, as `ai.*` and `*.read` do, nothing is kept: never more than both allow, but maybe less.
    """
    if not some or not others:
        return tuple(some or others)
    kept = [one for one in some if any(_within(one, other) for other in others)]
    kept += [other for other in others if any(_within(other, one) for one in some)]
    return tuple(dict.fromkeys(kept)) or NOTHING


def _within(one: str, other: str) -> bool:
    """Whether whatever fits one pattern surely fits the other: by their letters, if `*` is all that they have."""
    return one == other or (not {*"?["} & {*one, *other} and fnmatchcase(one, other))


STRICTER: dict[str, Callable[[Any, Any], Any]] = {
    "enabled": min,
    "review": lambda *two: "all" if "all" in two else "risky",
    "confidence_threshold": max,
    "max_reinjections": min,
    "max_parallel_calls": min,
    "allow_write_tools": min,
    "allow_execute_tools": min,
    "on_low_confidence": lambda *two: "skip" if "skip" in two else "ask",
    "ask_timeout_s": min,
    "allowed_tools": in_both,
}
"""By setting that says what may happen, the stricter of two values; all others say how well it happens."""


def routing_context(given: Any, settings: "RoutingContext | None" = None) -> RoutingContext:
    """Return the run's settings: `runtime.context` is None when the caller gives none, and a dict over HTTP.

    Args:
        settings: those of a graph inside another one, whose context may be anything.

    Raises:
        ConfigError: there is no such setting, or it does not take that value.
    """
    if isinstance(given, RoutingContext):
        return given
    if settings is not None and not (isinstance(given, dict) and given.keys() & RoutingContext.model_fields.keys()):
        return settings
    try:
        return RoutingContext.model_validate({} if given is None else given)
    except ValidationError as error:
        problem = first_problem(error, within="context")
        raise ConfigError(f"{problem}; the settings of a run are {', '.join(RoutingContext.model_fields)}") from error
