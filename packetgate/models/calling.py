"""Tool calls in a model's own language: the offered tools, and what the model wrote."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from packetgate.models.schemas import BOUNDS, Schema, without_keywords
from packetgate.state.base import TokenUsage


@dataclass(frozen=True)
class OfferedTool:
    """A tool that a model is offered."""

    name: str
    description: str
    parameters: Schema
    """JSON Schema of an object."""
    shown: Schema | None = None
    """A shorter schema for the prompt, if a grammar enforces `parameters`; None: the same schema."""

    @property
    def as_openai(self) -> dict[str, Any]:
        """The tool in the form of OpenAI's API, which chat templates take too."""
        return self._with(self.parameters)

    @property
    def for_prompt(self) -> dict[str, Any]:
        """The tool without argument bounds, for a prompt to a model whose arguments a grammar enforces."""
        return self._with(without_keywords(self.shown or self.parameters, BOUNDS))

    def _with(self, parameters: Schema) -> dict[str, Any]:
        function = {"name": self.name, "description": self.description, "parameters": parameters}
        return {"type": "function", "function": function}


@dataclass(frozen=True)
class WrittenCall:
    """A call as a model wrote it, with its token probabilities."""

    name: str
    arguments: dict[str, Any]
    name_probability: float | None = None
    """Probability of this name among the offered names; None: not measured."""
    probabilities: Mapping[str, float] = field(default_factory=dict)
    """Probability of each argument's written value: the product over the value's tokens."""
    written: Mapping[str, str] = field(default_factory=dict)
    """The original text of arguments that were written without a type and not parsed as text."""
    unread: str = ""
    """What the model wrote instead of a JSON object of arguments."""


@dataclass(frozen=True)
class CallAnswer:
    """The answer of a model that was offered tools, not validated yet."""

    calls: tuple[WrittenCall, ...]
    text: str
    """Text beside the calls; empty for a model in this process, which stops at the first word of text."""
    usage: TokenUsage
    cut_off: bool = False
    call_probability: float | None = None
    """Probability that it calls a tool rather than answers in words; None: not measured."""
    widened: tuple[str, ...] = ()
    """Offered tools whose arguments only validation checks."""
    message_id: str | None = None
    """The id under which its words were streamed."""

    @property
    def measured(self) -> bool:
        """Whether probabilities are known."""
        return self.call_probability is not None


@dataclass(frozen=True)
class WordProbabilities:
    """Probabilities of words as the beginning of an answer; they sum to 1."""

    by_word: Mapping[str, float]
    usage: TokenUsage


def names_of(tools: Iterable[OfferedTool]) -> list[str]:
    """Return the names of the tools, in order."""
    return [one.name for one in tools]
