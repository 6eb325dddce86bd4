"""Calls of tools in a model's own language: what it is offered, and what it wrote."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from packetgate.models.schemas import BOUNDS, Schema, without
from packetgate.state.base import TokenUsage

HeldBy = Literal["grammar", "json_schema", "tool_call", "json_object", "prompt"]
"""What kept an answer in its form, strongest first; `prompt`: nothing but the words it was asked with."""


@dataclass(frozen=True)
class Timing:
    """How long one answer took, in seconds."""

    reading_s: float
    """Evaluating what was new of the prompt."""
    writing_s: float


@dataclass(frozen=True)
class OfferedTool:
    """A tool as a model is offered it."""

    name: str
    description: str
    parameters: Schema
    """JSON Schema of an object."""
    told: Schema | None = None
    """A shorter schema for the prompt of a model that a grammar holds to `parameters`; None: the same."""

    @property
    def as_openai(self) -> dict[str, Any]:
        """The tool as OpenAI's API has it, and chat templates after it."""
        return self._with(self.parameters)

    @property
    def for_prompt(self) -> dict[str, Any]:
        """The tool for the prompt of a model that a grammar holds to its schema: without bounds of its arguments."""
        return self._with(without(self.told or self.parameters, BOUNDS))

    def _with(self, parameters: Schema) -> dict[str, Any]:
        told = {"name": self.name, "description": self.description, "parameters": parameters}
        return {"type": "function", "function": told}


@dataclass(frozen=True)
class WrittenCall:
    """A call as a model wrote it, and how probable it found what it wrote."""

    name: str
    arguments: dict[str, Any]
    name_probability: float | None = None
    """Of this name, among those that were offered; None: it could not be measured."""
    probabilities: Mapping[str, float] = field(default_factory=dict)
    """By argument, of its value as it was written, all tokens together."""
    written: Mapping[str, str] = field(default_factory=dict)
    """The text of arguments that the model's syntax gives no type, where it was read as more than a text."""
    unread: str = ""
    """What stands in place of the arguments, where that is no JSON object."""


@dataclass(frozen=True)
class CallAnswer:
    """What a model answered that was offered tools. Nothing of it is validated yet."""

    calls: tuple[WrittenCall, ...]
    text: str
    """What it says in words; empty of a model in this process, which is stopped at the first of them."""
    usage: TokenUsage
    cut_off: bool = False
    """Whether the length ran out."""
    acts: float | None = None
    """Probability that it calls, and does not answer in words; None: it could not be measured."""
    widened: tuple[str, ...] = ()
    """Tools on offer whose arguments only validation holds."""
    timing: Timing | None = None
    """None for models elsewhere."""
    held_by: HeldBy = "grammar"
    message_id: str | None = None
    """Under which its words were shown, if they were."""

    @property
    def measured(self) -> bool:
        """Whether probabilities could be had."""
        return self.acts is not None


@dataclass(frozen=True)
class Odds:
    """How probable some words are as the beginning of an answer, together 1."""

    of: Mapping[str, float]
    usage: TokenUsage
    timing: Timing | None = None
    """None for models elsewhere."""
    text: str = ""
    cut_off: bool = False
    measured: bool = True
    widened: tuple[str, ...] = ()
    held_by: HeldBy = "grammar"


def names_of(tools: Iterable[OfferedTool]) -> list[str]:
    """Return the names of tools."""
    return [one.name for one in tools]
