"""What a request means that follows on another: `and in Oslo?`, `open the second one`, `delete it`.

Only what stands in the session is put in: a part of the request before it, an argument of the last call, a line of
what was shown. Where nothing clearly fits, the request stays as it is.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from packetgate.deciders.reflex.reading import VERBS, mentions_in, steps_in, words_in
from packetgate.state.packet import CognitionPacket

SHORT = 6
"""Most words of a request that only says what is to be different."""

_LEAD = re.compile(r"^\s*(?:(?:and|now|also|then|or|what about|how about)\b[\s,:]*)+", re.IGNORECASE)
_PLACED = re.compile(r"^(in|to|from|for|on|at|of|with|by|as|about|near)\s+(.+?)[\s?.!]*$", re.IGNORECASE)
_ORDINALS = {
    name: at for at, name in enumerate("first second third fourth fifth sixth seventh eighth ninth tenth".split())
}
_ORDINAL = re.compile(rf"\bthe\s+({'|'.join(_ORDINALS)}|last|\d+(?:st|nd|rd|th))\s+one\b", re.IGNORECASE)
_SAID_OF = ("is", "was", "does", "did", "if", "when", "that", "how")
"""Words after which `it` stands for nothing, as in `what time is it`."""
_POINTED = re.compile(
    r"\b(?:(?:that|this|the same|the whole) (?:file|page|folder|branch|table|note|one)"
    rf"|{''.join(rf'(?<!{word} )' for word in _SAID_OF)}(?<=\w )it)\b(?!\s+(?:is|was|will|has)\b)",
    re.IGNORECASE,
)
_SIGN = re.compile(r"^(?:[-*•]\s+|\d+[.)]\s+|\[\w+\]\s+)")
_HIT = re.compile(r"^(\S+?)/?(?:, lines? \d|\s+\(\S)")
"""A place that a search found, or an entry of a listing: its path, and what is said of it."""
_FENCE = re.compile(r"^(`{3,})[^\n`]*\n(.*?)^\1\s*$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Earlier:
    """The turn before."""

    request: str = ""
    shown: str = ""
    """The answer, what tools returned in fences."""
    params: dict[str, Any] = field(default_factory=dict)
    """Of its last call."""


def request_of(packet: CognitionPacket) -> str:
    """Return the turn's request with what it leaves to the turn before put in."""
    return meant(packet.content.original_prompt, _earlier(packet))


def step_of(packet: CognitionPacket) -> str:
    """Return the step of the request that the packet is at; all of it where it only says what is not to be done."""
    request = request_of(packet)
    steps = steps_in(request) or [request]
    return steps[min(packet.routing.step, len(steps) - 1)]


def meant(request: str, earlier: Earlier) -> str:
    """Return a request with what it leaves to the turn before put in."""
    if not earlier.request:
        return request
    return _ordinal(request, earlier) or _pointed(request, earlier) or _changed(request, earlier.request) or request


def _earlier(packet: CognitionPacket) -> Earlier:
    said = packet.history
    calls = [one for one in packet.context.result_ledger if one.packet_id == packet.header.parent_packet_id]
    params = calls[-1].params if calls else {}
    return Earlier(_last(said, HumanMessage), _last(said, AIMessage), dict(params))


def _last(said: Sequence[BaseMessage], kind: type[BaseMessage]) -> str:
    return next((one.text for one in reversed(said) if isinstance(one, kind)), "")


def _ordinal(request: str, earlier: Earlier) -> str:
    """Return the request with the line of the answer that it counts to; empty where there is none."""
    match, items = _ORDINAL.search(request), [*items_in(earlier.shown)]
    if match is None or not items:
        return ""
    word = match[1].lower()
    at = -1 if word == "last" else _ORDINALS.get(word, int(re.sub(r"\D", "", word) or 1) - 1)
    return f"{request[: match.start()]}{items[at]}{request[match.end() :]}" if at < len(items) else ""


def _pointed(request: str, earlier: Earlier) -> str:
    """Return the request with what it points at: the one thing that was shown, or else what the last call was of."""
    match, mentions = _POINTED.search(request), mentions_in(request)
    if match is None or mentions.paths or mentions.urls:
        return ""
    items = [*dict.fromkeys(items_in(earlier.shown))]
    named = [one for one in earlier.params.values() if isinstance(one, str) and one and "\n" not in one]
    there = [one for one in named if mentions_in(one).has_target] or [one for one in named if one in earlier.request]
    thing = items[0] if len(items) == 1 and mentions_in(items[0]).has_target else there[0] if there else ""
    return f"{request[: match.start()]}{thing}{request[match.end() :]}" if thing else ""


def _changed(request: str, before: str) -> str:
    """Return the request before with the one part changed that this one names; empty where that is not clear."""
    lead = _LEAD.match(request)
    rest = request[lead.end() :].strip() if lead else ""
    if not rest or len(words_in(rest)) > SHORT or set(words_in(rest)) & VERBS:
        return ""
    new, old = mentions_in(rest), mentions_in(before)
    for now, then in ((new.urls, old.urls), (new.paths, old.paths)):
        if len(now) == 1 and then:
            return now[0].join(before.rsplit(then[-1], 1))
    placed = _PLACED.match(rest)
    if placed is None:
        return ""
    spots = [
        *re.finditer(
            rf"\b{placed[1]}\s+([^,;?!]+?)(?=\s+(?:in|to|from|for|on|at|when|if)\b|[,;?!.]*$|[,;?!])",
            before,
            re.IGNORECASE,
        )
    ]
    return f"{before[: spots[-1].start(1)]}{placed[2]}{before[spots[-1].end(1) :]}" if spots else ""


def items_in(shown: str) -> Iterator[str]:
    """Yield the things that an answer lists: files of a search, the values of a list, or a line each."""
    for _, block in _FENCE.findall(shown):
        listed = _json_items(block)
        lines = [_SIGN.sub("", line.strip()) for line in block.splitlines() if line.strip()]
        hits = [match[1] for line in lines if (match := _HIT.match(line))]
        yield from listed or hits or lines


def _json_items(block: str) -> list[str]:
    try:
        data = json.loads(block.strip().replace("'", '"'))
    except ValueError:
        return []
    rows = data if isinstance(data, list) else []
    values = [next(iter(row.values()), "") if isinstance(row, dict) else row for row in rows]
    return [str(one) for one in values]
