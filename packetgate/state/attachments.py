"""What tools answer with besides text: what it is and where it is kept, never its bytes."""

from typing import Literal

from pydantic import Field

from packetgate.state.base import Section
from packetgate.state.printing import byte_size

MAX_ATTACHMENTS = 8
"""Of one result; what is beyond is only named in its text."""
MAX_NAME = 200


class ResultAttachment(Section):
    """A picture, a sound or a file that a tool returned."""

    kind: Literal["image", "audio", "binary", "resource"]
    """`binary`: what it begins with is not what the server declares it to be."""
    mime_type: str = Field(pattern=r"^[a-z0-9][a-z0-9_.+-]{0,63}/[a-z0-9][a-z0-9_.+-]{0,63}$")
    """As the server declares it."""
    size: int = Field(ge=0)
    """In bytes."""
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    name: str = Field(default="", max_length=MAX_NAME)
    """The end of a resource's address; nobody goes there."""
    handle: str = Field(default="", pattern=r"^(kept:[0-9a-z]{1,64})?$")
    """Under which the session keeps it; empty where it was too large, or nothing keeps."""

    @property
    def told(self) -> str:
        """What it is, in words."""
        return self.told_as(self.name)

    def told_as(self, name: str) -> str:
        """Return what it is, under another name."""
        declared = f"declared as {self.mime_type}" if self.kind == "binary" else self.mime_type
        return f"{self.kind} {name and f'{name}, '}{declared}, {byte_size(self.size)}"
