"""Complete follow-up requests from the previous turn: `and in Oslo?`, `open the second one`, `delete it`.

Only text of the session is inserted: a part of the previous request, an argument of the last call, or a line of the
answer. If it is unclear what the request refers to, the request is unchanged.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from packetgate.reflex.reading import steps_in
from packetgate.state.packet import CognitionPacket
from packetgate.tools.text.reading import mentions_in, unquoted_words
from packetgate.tools.text.verbs import KNOWN_VERBS

_MAX_WORDS = 6  # words of a request that only states what differs from the previous request
_LEAD = re.compile(r"^\s*(?:(?:and|now|also|then|or|what about|how about)\b[\s,:]*)+", re.IGNORECASE)
_PLACE = re.compile(r"^(in|to|from|for|on|at|of|with|by|as|about|near)\s+(.+?)[\s?.!]*$", re.IGNORECASE)
_ORDINALS = {
    name: at for at, name in enumerate("first second third fourth fifth sixth seventh eighth ninth tenth".split())
}
_ORDINAL = re.compile(rf"\bthe\s+({'|'.join(_ORDINALS)}|last|\d+(?:st|nd|rd|th))\s+one\b", re.IGNORECASE)
_BEFORE_EMPTY_IT = ("is", "was", "does", "did", "if", "when", "that", "how")
"""Words after which `it` refers to nothing, as in `what time is it`."""
_REFERENCE = re.compile(
    r"\b(?:(?:that|this|the same|the whole) (?:file|page|folder|branch|table|note|one)"
    rf"|{''.join(rf'(?<!{word} )' for word in _BEFORE_EMPTY_IT)}(?<=\w )it)\b(?!\s+(?:is|was|will|has)\b)",
    re.IGNORECASE,
)
_BULLET = re.compile(r"^(?:[-*•]\s+|\d+[.)]\s+|\[\w+\]\s+)")
_PATH_OF_HIT = re.compile(r"^(\S+?)/?(?:, lines? \d|\s+\(\S)")
_FENCE = re.compile(r"^(`{3,})[^\n`]*\n(.*?)^\1\s*$", re.DOTALL | re.MULTILINE)


class PreviousTurn(NamedTuple):
    """The previous request, its answer, and the arguments of its last call."""

    request: str = ""
    answer: str = ""
    params: dict[str, Any] = {}


def completed_request(packet: CognitionPacket) -> str:
    """Return the turn's request; a follow-up is completed from the previous turn."""
    calls = [entry for entry in packet.context.result_ledger if entry.packet_id == packet.header.parent_packet_id]
    params = dict(calls[-1].params) if calls else {}
    request, answer = _last(packet.history, HumanMessage), _last(packet.history, AIMessage)
    return complete_request(packet.content.original_prompt, PreviousTurn(request, answer, params))


def current_step(packet: CognitionPacket) -> str:
    """Return the current step of the request; the whole request if it only says what not to do."""
    request = completed_request(packet)
    steps = steps_in(request) or [request]
    return steps[min(packet.routing.step, len(steps) - 1)]


def complete_request(request: str, previous: PreviousTurn) -> str:
    """Return a request; a follow-up is completed from the previous turn."""
    if not previous.request:
        return request
    return (
        _with_item(request, previous)
        or _with_reference(request, previous)
        or _with_change(request, previous.request)
        or request
    )


def _last(messages: Sequence[BaseMessage], kind: type[BaseMessage]) -> str:
    return next((message.text for message in reversed(messages) if isinstance(message, kind)), "")


def _with_item(request: str, previous: PreviousTurn) -> str:
    match, items = _ORDINAL.search(request), items_in(previous.answer)
    if match is None or not items:
        return ""
    word = match[1].lower()
    at = -1 if word == "last" else _ORDINALS.get(word, int(re.sub(r"\D", "", word) or 1) - 1)
    return f"{request[: match.start()]}{items[at]}{request[match.end() :]}" if at < len(items) else ""


def _with_reference(request: str, previous: PreviousTurn) -> str:
    match, mentions = _REFERENCE.search(request), mentions_in(request)
    if match is None or mentions.paths or mentions.urls:
        return ""
    items = [*dict.fromkeys(items_in(previous.answer))]
    values = [value for value in previous.params.values() if isinstance(value, str) and value and "\n" not in value]
    targets = [value for value in values if mentions_in(value).has_target]
    targets = targets or [value for value in values if value in previous.request]
    referent = items[0] if len(items) == 1 and mentions_in(items[0]).has_target else next(iter(targets), "")
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


def items_in(answer: str) -> list[str]:
    """Return the items in an answer's fenced outputs: the values of a JSON list, the paths of search hits, or lines."""
    return [item for _, block in _FENCE.findall(answer) for item in _items(block)]


def _items(block: str) -> Iterator[str]:
    try:
        data = json.loads(block.strip().replace("'", '"'))
    except ValueError:
        data = None
    if isinstance(data, list) and data:
        yield from (str(next(iter(row.values()), "") if isinstance(row, dict) else row) for row in data)
        return
    lines = [_BULLET.sub("", line.strip()) for line in block.splitlines() if line.strip()]
    hits = [match[1] for line in lines if (match := _PATH_OF_HIT.match(line))]
    yield from hits or lines
