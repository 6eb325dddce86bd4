"""What the judge says of a tool for a request."""

from dataclasses import dataclass
from typing import Literal

SlotState = Literal["filled", "missing", "default"]


@dataclass(frozen=True)
class Slot:
    """One parameter, and the words of the request that fill it."""

    name: str
    state: SlotState
    """`missing`: required, and the request does not say it. `default`: left out, as it may be."""
    text: str
    """The words that fill it; empty unless it is filled."""
    start: int
    end: int
    """Character offsets of these words in the request; both 0 unless it is filled."""
    probability: float
    """Of the state, and of these very words."""


@dataclass(frozen=True)
class Judgement:
    """How a tool serves a request."""

    tool_name: str
    fits: float
    """How probably it serves the request, or part of it, for the encoder alone."""
    slots: tuple[Slot, ...]
    """One a parameter, in the order of the schema."""

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of required parameters that the request does not fill."""
        return tuple(slot.name for slot in self.slots if slot.state == "missing")
