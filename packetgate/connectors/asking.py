"""What a user can say to a session."""

from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import BaseMessage

from packetgate.state.request import TurnRequest
from packetgate.tools.attached.parts import Part


@dataclass(frozen=True)
class Say:
    """Something new from the user."""

    text: str
    request: TurnRequest = field(default_factory=TurnRequest)
    question_id: str | None = None
    """The question that was last shown to whoever says it, in case that it only says yes or no; as in `Reply`."""
    history: tuple[BaseMessage, ...] = ()
    """What was said before elsewhere, for a session that has just been opened."""
    follows: str = ""
    """The packet that it follows on; where the session has another one by now, nothing is done."""
    files: tuple[Part, ...] = ()
    """What is attached, as parts of a message."""


@dataclass(frozen=True)
class Reply:
    """The user's reply to a pending question: words, a decision, or `{"decisions": [...]}`."""

    value: Any
    question_id: str | None = None
    """The question that it is meant for, or the beginning of its id; None: whichever waits; empty: none was shown."""


@dataclass(frozen=True)
class Continue:
    """Go on with a turn whose process ended in the middle."""


Turn = Say | Reply | Continue
