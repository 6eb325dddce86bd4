"""Complete follow-up requests from the previous turn: `and in Oslo?`, `delete it`.

Only text of the session is inserted: a part of the previous request, or an argument of the last call. If it is unclear
what the request refers to, the request is unchanged.
"""

import re
from typing import Any, NamedTuple

from langchain_core.messages import HumanMessage

from packetgate.reflex.reading import steps_in
from packetgate.state.packet import CognitionPacket
from packetgate.tools.text.reading import mentions_in, unquoted_words
from packetgate.tools.text.verbs import KNOWN_VERBS

_MAX_WORDS = 6  # words of a request that only states what differs from the previous request
_LEAD = re.compile(r"^\s*(?:(?:and|now|also|then|or|what about|how about)\b[\s,:]*)+", re.IGNORECASE)
_PLACE = re.compile(r"^(in|to|from|for|on|at|of|with|by|as|about|near)\s+(.+?)[\s?.!]*$", re.IGNORECASE)
_BEFORE_EMPTY_IT = ("is", "was", "does", "did", "if", "when", "that", "how")
"""Words after which `it` refers to nothing, as in `what time is it`."""
_REFERENCE = re.compile(
    r"\b(?:(?:that|this|the same|the whole) (?:file|page|folder|branch|table|note|one)"
    rf"|{''.join(rf'(?<!{word} )' for word in _BEFORE_EMPTY_IT)}(?<=\w )it)\b(?!\s+(?:is|was|will|has)\b)",
    re.IGNORECASE,
)


class PreviousTurn(NamedTuple):
    """The previous request, and the arguments of its last call."""

    request: str = ""
    params: dict[str, Any] = {}


def completed_request(packet: CognitionPacket) -> str:
    """Return the turn's request; a follow-up is completed from the previous turn."""
    calls = [entry for entry in packet.context.result_ledger if entry.packet_id == packet.header.parent_packet_id]
    params = dict(calls[-1].params) if calls else {}
    request = next((message.text for message in reversed(packet.history) if isinstance(message, HumanMessage)), "")
    return complete_request(packet.content.original_prompt, PreviousTurn(request, params))


def current_step(packet: CognitionPacket) -> str:
    """Return the current step of the request; the whole request if it only says what not to do."""
    request = completed_request(packet)
    steps = steps_in(request) or [request]
    return steps[min(packet.routing.step, len(steps) - 1)]


def complete_request(request: str, previous: PreviousTurn) -> str:
    """Return a request; a follow-up is completed from the previous turn."""
    if not previous.request:
        return request
    return _with_reference(request, previous) or _with_change(request, previous.request) or request


def _with_reference(request: str, previous: PreviousTurn) -> str:
    match, mentions = _REFERENCE.search(request), mentions_in(request)
    if match is None or mentions.paths or mentions.urls:
        return ""
    values = [value for value in previous.params.values() if isinstance(value, str) and value and "\n" not in value]
    targets = [value for value in values if mentions_in(value).has_target]
    referent = next(iter(targets or [value for value in values if value in previous.request]), "")
    return f"{request[: match.start()]}{referent}{request[match.end() :]}" if referent else ""


def _with_change(request: str, previous: str) -> str:
    lead = _LEAD.match(request)
    rest = request[lead.end() :].strip() if lead else ""
    words = unquoted_words(rest)
    if not rest or len(words) > _MAX_WORDS or KNOWN_VERBS.intersection(words):
        return ""
    new, old = mentions_in(rest), mentions_in(previous)
    for now, then in ((new.urls, old.urls), (new.paths, old.paths)):
        if len(now) == 1 and then:
            return now[0].join(previous.rsplit(then[-1], 1))
    place = _PLACE.match(rest)
    if place is None:
        return ""
    ends = r"(?=\s+(?:in|to|from|for|on|at|when|if)\b|[,;?!.]*$|[,;?!])"
    spots = [*re.finditer(rf"\b{place[1]}\s+([^,;?!]+?){ends}", previous, re.IGNORECASE)]
    return f"{previous[: spots[-1].start(1)]}{place[2]}{previous[spots[-1].end(1) :]}" if spots else ""
