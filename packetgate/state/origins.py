"""Where a call's arguments come from, as data: the packet keeps it, and every front end shows it."""

from enum import StrEnum
from typing import Any

from packetgate.state.base import Section


class OriginKind(StrEnum):
    """Who gave a value; where several did, the first of these."""

    USER = "user"
    DEFAULT = "default"
    """The tool's own schema."""
    STRUCTURED = "structured"
    """A whole field of a tool's structured output."""
    TEXT = "text"
    """Free text of a tool's output, which whoever wrote it could word as they liked."""
    NOBODY = "nobody"
    """The model made it up, or put it together."""

    @property
    def is_given(self) -> bool:
        """Whether the user or a default gave it."""
        return self in {OriginKind.USER, OriginKind.DEFAULT}


class Role(StrEnum):
    """What an argument is to its tool."""

    DESTINATION = "destination"
    """Where it sends something: a recipient, an address, a URL, a path, an account, a channel."""
    PAYLOAD = "payload"
    """What it sends."""
    OTHER = "other"


class Origin(Section):
    """Where one argument comes from."""

    kind: OriginKind
    tool: str = ""
    """Whose output it stands in."""
    worded: bool = False
    """Whether that field is one that somebody words as they like, such as a subject."""
    role: Role = Role.OTHER
    loud: bool = False
    """Whether the user is asked, even about a read, and however much they allowed beforehand."""
    why: str = ""
    """Why it is loud, in words."""
    sentence: str = ""
    """The passage of the output, with control characters told by name."""
    marked: str = ""
    """The part of the passage that was taken over."""

    @property
    def is_trusted(self) -> bool:
        """Whether the user or a default gave it."""
        return self.kind.is_given

    @property
    def told(self) -> str:
        """Who gave it, in words."""
        return {
            OriginKind.USER: "you",
            OriginKind.DEFAULT: "the tool's own default",
            OriginKind.STRUCTURED: f"a field of what {self.tool} returned",
            OriginKind.TEXT: f"the text that {self.tool} returned",
            OriginKind.NOBODY: "the model",
        }[self.kind]


USER = Origin(kind=OriginKind.USER)
"""Of what the user wrote into a call with their own hands."""


def origins_of_version_2(kept: Any) -> Any:
    """Read what packets of version 2 kept of an argument's origin: `user`, `default`, `model` or `tool:NAME`."""
    if not isinstance(kept, dict):
        return kept
    return {name: _of_word(origin) if isinstance(origin, str) else origin for name, origin in kept.items()}


def _of_word(word: str) -> Origin:
    if word.startswith("tool:"):
        return Origin(kind=OriginKind.TEXT, tool=word.removeprefix("tool:"))
    return Origin(kind=OriginKind.NOBODY if word == "model" else OriginKind(word))
