"""Provenance of a call's arguments, and the labels of a session."""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum

from pydantic import Field

from packetgate.state.base import Section, now


class FlowLabel(StrEnum):
    """The labels of a session: the kinds of data that it has received. In a labelled session,
    reads that reach outside are flagged, except to named hosts."""

    UNTRUSTED = "untrusted"
    """Text that third parties may have written."""
    PRIVATE = "private"
    """Private data of the user."""

    @property
    def meaning(self) -> str:
        """The label's meaning, as text for a question."""
        return "text of third parties" if self is FlowLabel.UNTRUSTED else "private data"


class SessionLabel(Section):
    """A label with the tool, attachment or message that set it first."""

    label: FlowLabel
    source: str
    at: datetime = Field(default_factory=now)


def merged_labels(labels: Iterable[SessionLabel]) -> tuple[SessionLabel, ...]:
    """Return the first label of each kind."""
    first: dict[FlowLabel, SessionLabel] = {}
    for label in labels:
        first.setdefault(label.label, label)
    return tuple(first.values())


class OriginKind(StrEnum):
    """Source of a value. The first of several sources applies, except that a default comes before the user."""

    USER = "user"
    DEFAULT = "default"
    """A default in the tool's own schema."""
    STRUCTURED = "structured"
    """A complete field of a tool's structured output."""
    TEXT = "text"
    """Free text of a tool's output, which anybody may have written."""
    NOBODY = "nobody"
    """The model invented the value or combined it from parts."""

    @property
    def is_user_or_default(self) -> bool:
        """Whether the value comes from the user or from a default."""
        return self in {OriginKind.USER, OriginKind.DEFAULT}


class ArgumentRole(StrEnum):
    """Meaning of an argument to its tool."""

    DESTINATION = "destination"
    """A recipient, address, URL, path, account or channel."""
    PAYLOAD = "payload"
    """Content that is sent."""
    OTHER = "other"


class Origin(Section):
    """The source of one argument, and whether the argument is flagged."""

    kind: OriginKind
    tool: str = ""
    is_free_text: bool = False
    """Whether the output's field is free text, such as a subject line."""
    role: ArgumentRole = ArgumentRole.OTHER
    is_flagged: bool = False
    """Whether the call may run only after a question, even if it is a read or was allowed beforehand."""
    why: str = ""
    passage: str = ""
    """The passage of the output, control characters replaced by names."""
    flagged_part: str = ""
    """The part of the passage that the flag is about, such as an address."""

    @property
    def source(self) -> str:
        """The source as text for a question."""
        return {
            OriginKind.USER: "you",
            OriginKind.DEFAULT: "the tool's own default",
            OriginKind.STRUCTURED: f"a field of what {self.tool} returned",
            OriginKind.TEXT: f"the text that {self.tool} returned",
            OriginKind.NOBODY: "the model",
        }[self.kind]


USER = Origin(kind=OriginKind.USER)
"""Origin of arguments that the user typed into a call."""
