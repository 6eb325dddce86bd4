"""The request of a turn, and the checks of requests and replies."""

import re
from typing import Any

from pydantic import Field

from packetgate.state.base import Section, is_storable
from packetgate.state.channels import SwitchHints
from packetgate.state.errors import RequestError
from packetgate.state.sections import Attachment

MAX_REQUEST_CHARS = 200_000
MAX_ATTACHED = 20
_NOT_TEXT = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f\ud800-\udfff]")


class TurnRequest(Section):
    """Data that a connector adds to the text of a request."""

    origin: str = "unknown"
    person: str = ""
    """The user's name, in connectors with several users."""
    switch_hints: SwitchHints = SwitchHints()
    is_new: bool = False
    """Whether the message cannot be a reply to the open question, because its author was not asked."""
    takes_commands: bool = True
    """Whether the message may be a command or a reply: not if another person may have written it, as in a pipe."""
    context_type: str | None = None
    """Kind of conversation; None keeps the session's."""
    attachments: tuple[Attachment, ...] = Field(default=(), max_length=MAX_ATTACHED)

    def with_files(self, attachments: tuple[Attachment, ...]) -> "TurnRequest":
        """Return the request with more attachments.

        Raises:
            RequestError: there are too many.
        """
        if len(self.attachments) + len(attachments) > MAX_ATTACHED:
            raise RequestError(
                f"{len(self.attachments) + len(attachments)} attachments; the limit is {MAX_ATTACHED}: attach fewer"
            )
        return self.changed(attachments=self.attachments + attachments) if attachments else self


def check_request(text: str) -> str:
    """Return the request without surrounding white space.

    Raises:
        RequestError: the request is empty, longer than `MAX_REQUEST_CHARS` characters, or not text.
    """
    request = text.strip()
    if not request:
        raise RequestError("the request is empty: write what you want, such as 'Read README.md'")
    if len(request) > MAX_REQUEST_CHARS:
        raise RequestError(
            f"the request has {len(request):,} characters, the limit is {MAX_REQUEST_CHARS:,}: "
            "put the text into a file and ask about the file"
        )
    if bad := _NOT_TEXT.search(request):
        raise RequestError(
            f"the request is not text: it holds the character U+{ord(bad[0]):04X}; "
            "send text in UTF-8, and binary data as a file"
        )
    return request


def check_reply(reply: Any) -> Any:
    """Return a reply unchanged.

    Raises:
        RequestError: the reply is None, or a checkpoint cannot store it.
    """
    if reply is None:
        raise RequestError("the reply is empty: send yes, no, skip, other words, or a decision")
    if not is_storable(reply):
        raise RequestError(
            "invalid reply: an integer exceeds 64 bits, or a key has an unpaired surrogate; send such values as text"
        )
    return reply


def decode_request(data: bytes, source: str) -> str:
    """Decode a request read from `source` (a file name or `standard input`).

    Raises:
        RequestError: the bytes are not UTF-8.
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RequestError(
            f"{source} is not UTF-8 text: byte 0x{data[error.start]:02x} at offset {error.start}; "
            "convert it to UTF-8, or name the file in the request instead"
        ) from error
