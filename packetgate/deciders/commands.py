"""Commands that a user types as a message: they select their call without a decider."""

import re

from packetgate.deciders.protocols import SelectedCall, Selection
from packetgate.state.packet import CognitionPacket
from packetgate.tools.catalogue.catalogue import Catalogue

COMMAND = "you asked for it by a command"
ONLY_UNDO = "the request only asks to undo a change"
UNDO_TOOL = "ai.undo"
_UNDO = re.compile(r"/undo(?:\s+(?P<change>[0-9a-f][0-9a-f-]{3,39}))?", re.IGNORECASE)
_THING = (
    r"(?:that|this|it|(?:(?:the|my|your)\s+)?(?:(?:last|latest|previous)\s+)?(?:change|edit|write|move|copy|deletion))"
)
_UNDO_WORDS = re.compile(
    rf"(?:please\s+)?(?:(?:undo|revert|reverse|roll\s+back|take\s+back)(?:\s+{_THING})?|(?:take|roll)\s+{_THING}\s+back)"
    r"(?:\s+(?:to|of|in)\s+(?P<path>\S*\w))?(?:\s+(?P<change>[0-9a-f]{8,32}))?(?:,?\s+please)?[.!]*",
    re.IGNORECASE,
)


def undo_command(change: str = "") -> str:
    """Return the message that undoes a change, or the last change."""
    return f"/undo {change}".rstrip()


def is_command(text: str) -> bool:
    """Whether a message is a command."""
    return _UNDO.fullmatch(text.strip()) is not None


def command_selection(packet: CognitionPacket, catalogue: Catalogue) -> Selection | None:
    """Return the call of the command that the user typed; None if the request is not a command."""
    command = _UNDO.fullmatch(packet.content.original_prompt.strip())
    if command is None:
        return None
    if UNDO_TOOL not in catalogue:
        reason = "only changes of the built-in tools can be undone, and these tools are not available here"
        return Selection(action="none", confidence=1.0, reasoning=reason, decided_by="reflex")
    return _undo_selection(command, COMMAND)


def undo_in_words(text: str) -> Selection | None:
    """Return the call that a text such as `undo that` asks for, if it asks for nothing else; otherwise None."""
    words = _UNDO_WORDS.fullmatch(text.strip())
    return _undo_selection(words, ONLY_UNDO) if words else None


def _undo_selection(match: re.Match[str], reason: str) -> Selection:
    params = {name: value for name, value in match.groupdict().items() if value}
    call = SelectedCall(tool_name=UNDO_TOOL, params=params, reasoning=reason)
    return Selection(action="call", calls=(call,), complete=True, confidence=1.0, reasoning=reason, decided_by="reflex")
