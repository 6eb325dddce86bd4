"""What can be told of a model that runs in this process, and of how it works."""

from dataclasses import dataclass


@dataclass(frozen=True)
class LocalModelInfo:
    """A model in this process."""

    description: str
    """Its kind, quantisation and size."""
    context_size: int
    """Tokens that prompt and answer may take together."""
    trained_context: int
    """The longest prompt it was trained on, in tokens."""
    own_template: bool
    """Whether its file carries a chat template; without one, ChatML is used."""


@dataclass(frozen=True)
class Timing:
    """How long one answer took, in seconds."""

    reading_s: float
    """Evaluating what was new of the prompt."""
    writing_s: float
