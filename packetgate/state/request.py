"""What a connector hands over to start a turn, and what it must refuse."""

import re
from typing import Any

from pydantic import Field

from packetgate.state.base import Section, is_storable
from packetgate.state.channels import WayOut
from packetgate.state.errors import RequestError
from packetgate.state.sections import Attachment

MAX_REQUEST_CHARS = 200_000
_NOT_TEXT = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f\ud800-\udfff]")
MAX_ATTACHED = 20
"""Files, and other people's messages, that a request comes with."""


class TurnRequest(Section):
    """What the connector knows about a request, beside its words."""

    origin: str = "unknown"
    person: str = ""
    """Who asks, where a connector speaks with several."""
    way_out: WayOut = WayOut()
    """How the connector says that writes and commands are switched on."""
    is_new: bool = False
    """Whether it is no reply to a question that waits, whatever it says: who asks was not asked."""
    context_type: str | None = None
    """The kind of conversation; None keeps the session's."""
    attachments: tuple[Attachment, ...] = Field(default=(), max_length=MAX_ATTACHED)
    """What the user handed over."""

    def through(self, channel: str, person: str = "") -> "TurnRequest":
        """Return the request as one that came in there, from whom that channel knows, if it knows anybody."""
        return self._changed(origin=channel, person=person or self.person)

    def with_files(self, attachments: tuple[Attachment, ...]) -> "TurnRequest":
        """Return the request with more that the user handed over.

        Raises:
            RequestError: it is too much.
        """
        if len(self.attachments) + len(attachments) > MAX_ATTACHED:
            raise RequestError(f"more than {MAX_ATTACHED} things are attached: attach fewer")
        return self._changed(attachments=self.attachments + attachments) if attachments else self


def check_request(text: str) -> str:
    """Return the request as it will be used, without surrounding white space.

    Raises:
        RequestError: it is empty, longer than `MAX_REQUEST_CHARS` characters, or not text.
    """
    request = text.strip()
    if not request:
        raise RequestError("the request is empty: say what you want, for example: packetgate ask 'Read README.md'")
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
    """Return a reply as it is.

    Raises:
        RequestError: it is nothing at all, or holds what cannot be kept.
    """
    if reply is None:
        raise RequestError("a reply must say something: yes, no, skip, your words, or a decision")
    if not is_storable(reply):
        raise RequestError(
            "a whole number in the reply is larger than 64 bits, or a name in it holds half a surrogate pair"
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
