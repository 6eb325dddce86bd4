"""While a question for a value is open, a message is the value, a new request, or neither."""

import pytest
from support.packets import packet, tool

from packetgate.deciders.replies import Message
from packetgate.reflex.replies import ReflexReplyReader
from packetgate.tools.catalogue.catalogue import Catalogue

CLOCK = tool(
    "clock.current_time",
    "zone",
    zone={"type": "string", "description": "IANA time zone, such as Africa/Lagos"},
    description="Get the current time in a time zone.",
)


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("Africa/Cairo", "reply"),
        ("use Africa/Cairo", "reply"),
        ("what time is it in Cairo", "request"),
        ("how late is it in Quito?", "request"),
    ],
)
def test_a_whole_question_is_no_value(words: str, kind: str) -> None:
    catalogue = Catalogue([CLOCK])
    message = Message(words, packet("What time is it?", catalogue=catalogue), catalogue)
    assert ReflexReplyReader().classify_answer(message, CLOCK, "zone").kind == kind
