"""What a user can say to a session."""

from dataclasses import dataclass, field
from typing import Any

from state.request import TurnRequest


@dataclass(frozen=True)
class Say:
    """Something new from the user."""

    text: str
    request: TurnRequest = field(default_factory=TurnRequest)


@dataclass(frozen=True)
class Reply:
    """The user's reply to a pending question: words, a decision, or `{"decisions": [...]}`."""

    value: Any


@dataclass(frozen=True)
class Continue:
    """Go on with a turn whose process ended in the middle."""


Turn = Say | Reply | Continue
