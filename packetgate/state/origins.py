"""Provenance of a call's arguments."""

from enum import StrEnum

from packetgate.state.base import Section


class OriginKind(StrEnum):
    """Source of a value. If a value has several sources, the first in this order applies."""

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
    """Flagged: the user is always asked, even about a read, whatever they allowed beforehand."""
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
