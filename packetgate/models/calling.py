"""Native tool calling: the offered tools, and the calls that the model wrote."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from packetgate.models.schemas import BOUNDS, Schema, without_keywords
from packetgate.state.base import TokenUsage


@dataclass(frozen=True)
class OfferedTool:
    """A tool that is offered to a model."""

    name: str
    description: str
    parameters: Schema
    """JSON Schema of an object."""
    prompt_schema: Schema | None = None
    """A shorter schema for the prompt, if a grammar enforces `parameters`; None: the same schema."""

    @property
    def openai_format(self) -> dict[str, Any]:
        """The tool in the format of OpenAI's API, which chat templates also accept."""
        return self._with(self.parameters)

    @property
    def prompt_format(self) -> dict[str, Any]:
        """The tool without argument bounds, for a prompt to a model whose arguments a grammar enforces."""
        return self._with(without_keywords(self.prompt_schema or self.parameters, BOUNDS))

    def _with(self, parameters: Schema) -> dict[str, Any]:
        function = {"name": self.name, "description": self.description, "parameters": parameters}
        return {"type": "function", "function": function}


@dataclass(frozen=True)
class WrittenCall:
    """A call as a model wrote it, with the probabilities of its name and arguments."""

    name: str
    arguments: dict[str, Any]
    name_probability: float | None = None
    """Probability of this name among the offered names; None: not measured."""
    probabilities: Mapping[str, float] = field(default_factory=dict)
    """Probability of each argument's written value: the product over the value's tokens."""
    written: Mapping[str, str] = field(default_factory=dict)
    """The original text of each argument that was parsed from untyped text into another type."""
    invalid_arguments: str = ""
    """The text that the model wrote as arguments, if it is not a JSON object."""


@dataclass(frozen=True)
class CallAnswer:
    """The answer of a model that was offered tools, not validated yet."""

    calls: tuple[WrittenCall, ...]
    text: str
    """Text before or after the calls. Empty for a model in this process: it stops if the answer begins with text."""
    usage: TokenUsage
    cut_off: bool = False
    call_probability: float | None = None
    """Probability that the answer is a tool call and not text; None: not measured."""
    widened_tools: tuple[str, ...] = ()
    """Tools whose argument schema no grammar can enforce in full; validation checks their arguments."""
    message_id: str | None = None
    """The id of the streamed message."""

    @property
    def has_probabilities(self) -> bool:
        """Whether the call probability was measured."""
        return self.call_probability is not None


@dataclass(frozen=True)
class WordProbabilities:
    """Probabilities that an answer begins with each of several words; they sum to 1."""

    by_word: Mapping[str, float]
    usage: TokenUsage


def tool_names(tools: Iterable[OfferedTool]) -> list[str]:
    """Return the names of the tools, in order."""
    return [one.name for one in tools]
