"""Complete follow-up requests from the session: `and in Oslo?`, `delete it`, `open the second one`, `again`.

Only text of the session is inserted: a part of the previous request, an argument of a call, or a name that a call
returned. If it is unclear what the request refers to, the request is unchanged.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from langchain_core.messages import HumanMessage

from packetgate.deciders.replies import after_verdict
from packetgate.gate.replies import CORRECTING_WORDS, read_reply
from packetgate.reflex.reading import steps_in
from packetgate.reflex.values.dates import find_time_zone
from packetgate.state.errors import PacketgateError
from packetgate.state.origins import ArgumentRole
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import ToolCall
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.nearly_json import read_nearly_json
from packetgate.tools.text.reading import (
    has_question,
    is_question,
    is_small_talk,
    mentions_in,
    unquoted_words,
    verbs_in,
)
from packetgate.tools.text.roles import role_of
from packetgate.tools.text.verbs import KNOWN_VERBS

_MAX_WORDS = 6  # words of a request that only states what differs from the previous request
_LEAD = re.compile(r"^\s*(?:(?:and|now|also|then|or|what about|how about)\b[\s,:]*)+", re.IGNORECASE)
_PLACE = re.compile(r"^(in|to|from|for|on|at|of|with|by|as|about|near)\s+(.+?)[\s?.!]*$", re.IGNORECASE)
_NO_THING = ("if", "when", "that", "how")
"""Words after which `it` refers to nothing, as in `say if it is late`."""
_TIMES = "time|late|early|day|date|hour|month|year|weather|is it going"
_REFERENCE = re.compile(
    r"\b(?:(?:that|this|the same|the whole) (?:file|page|folder|branch|table|note|one)"
    rf"|{''.join(rf'(?<!{word} )' for word in _NO_THING)}(?<=\w )its?)\b(?!\s+(?:is|was|will|has (?:been|to))\b)",
    re.IGNORECASE,
)
_FILE = re.compile(r"\b(?:file|page|folder)$", re.IGNORECASE)
_TIME = re.compile(rf"\b(?:{_TIMES})\b(?:\s+\w+)?\s+(?:is|was)\s+it\b|\bhow\s+(?:is|was)\s+it\b", re.IGNORECASE)
"""Questions in which `it` refers to nothing, as in `what time is it`."""
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth".split()
_ORDINAL = re.compile(
    rf"\bthe ({'|'.join(_ORDINALS)}|last|\d{{1,3}}(?:st|nd|rd|th))"
    r"(?:\s+(?:one|file|result|hit|match|entry|item|page)\b(?:\s+of (?:them|these|those)\b)?|(?=[\s?.!]*$))",
    re.IGNORECASE,
)
_UNSAFE, _SEPARATOR = re.compile(r'["\u201c-\u201f\x00-\x1f\x7f-\x9f\u2028\u2029]'), re.compile(r"[\s;,]")
_FROM_TO = frozenset("copy cp move mv rename compare diff duplicate".split())
"""Verbs with two paths: next to another path, `it` is the first."""
_AGAIN = frozenset("again repeat once more rerun retry".split())
_BESIDE_AGAIN = frozenset("do it that this please now try run the same thing me and time one".split())
_MAX_NAME_CHARS = 100
_NAMES = ("path", "file", "filename", "name", "title", "url", "uri", "id")
"""Fields that name an entry of a list, in order of preference."""
_BULLET = re.compile(r"\s*(?:[-*•]\s+|\d+[.)]\s+|\[\w+\]\s+)?")


class PreviousTurn(NamedTuple):
    """The earlier values that a follow-up may refer to."""

    request: str = ""
    """The previous request, completed."""
    call: tuple[ToolSpec, Mapping[str, Any]] | None = None
    """The last call of the previous turn: tool and arguments."""
    calls: Sequence[ToolCall] = ()
    """The session's calls, oldest first."""


class ReadRequest(NamedTuple):
    """A turn's request, with the user's later words."""

    text: str
    """The request, completed and corrected."""
    answers: tuple[str, ...]
    """Later words of the user that `text` does not contain."""
    changed: Mapping[str, Any]
    """The arguments that the user's last words change in the last call, with their new values."""


def read_request(packet: CognitionPacket, catalogue: Catalogue) -> ReadRequest:
    """Return the turn's request, completed from the previous turn, with the user's corrections. Blocking."""
    now, answers = packet.header.local_time, [*packet.content.clarifications]
    request = complete_request(packet.content.original_prompt, _previous_turn(packet, catalogue), now)
    changed: Mapping[str, Any] = {}
    for approval in packet.governance.approvals:
        spec = catalogue.get(approval.tool_name)
        if spec and approval.goes_to_selection and approval.comment in answers:
            from packetgate.reflex.changes import read_change  # numpy is slow to load

            change = read_change(approval.comment, spec, approval.params, request, now)
            changed, request = change.params, change.request or request
            if change.request:
                answers.remove(approval.comment)
    return ReadRequest(request, tuple(answers), changed)


def current_step(packet: CognitionPacket, catalogue: Catalogue) -> str:
    """Return the current step of the request; the whole request if it only forbids something. Blocking."""
    request = read_request(packet, catalogue).text
    steps = steps_in(request) or [request]
    return steps[min(packet.routing.step, len(steps) - 1)]


def complete_request(request: str, previous: PreviousTurn, now: datetime) -> str:
    """Return a request; a follow-up is completed from the previous turn. Blocking."""
    words = {*unquoted_words(request)}
    if words & _AGAIN and words <= _AGAIN | _BESIDE_AGAIN:
        return previous.request or request
    found = _with_entry(request, previous.calls) or _with_object(request, previous)
    return found or (previous.request and _with_change(request, previous, now)) or request


def _previous_turn(packet: CognitionPacket, catalogue: Catalogue) -> PreviousTurn:
    entry = next(reversed(packet.context.result_ledger), None)
    said = (message.text for message in reversed(packet.history) if isinstance(message, HumanMessage))
    request = next((text for text in said if read_reply(text) is None and not is_small_talk(text)), "")
    call = None
    if entry is not None and entry.packet_id == packet.header.parent_packet_id:
        request, spec = entry.request or request, catalogue.get(entry.tool_name)
        call = (spec, entry.params) if spec else None
    return PreviousTurn(request, call, packet.context.earlier_calls)


def _with_entry(request: str, calls: Sequence[ToolCall]) -> str:
    """Return the request with an entry of the last list in place of `the second one`; empty without one."""
    match, mentions = _ORDINAL.search(request), mentions_in(request)
    if match is None or mentions.has_target:
        return ""
    entries = next((listed for call in reversed(calls) if len(listed := listed_by(call)) > 1), ())
    word = match[1].lower()
    at = _ORDINALS.index(word) if word in _ORDINALS else -1 if word == "last" else int(word[:-2]) - 1
    return _replaced(request, match, entries[at]) if -len(entries) <= at < len(entries) else ""


def _with_object(request: str, previous: PreviousTurn) -> str:
    """Return the request with the last file, page or other thing in place of `it`; empty without one."""
    match, mentions = _REFERENCE.search(request), mentions_in(request)
    if match is None or mentions.urls or _TIME.search(request) or not (verbs_in(request) or has_question(request)):
        return ""
    takes_two = _FROM_TO.intersection(verbs_in(request)) and match.end() <= request.find(next(iter(mentions.paths), ""))
    if mentions.paths and not takes_two:
        return ""
    objects = (found for call in reversed(previous.calls) if (found := object_of(call)))
    if match[0].lower().endswith("folder"):
        objects = (found for found in objects if "." not in found.rpartition("/")[2])
    values = previous.call[1].values() if previous.call else ()
    texts = [value for value in values if isinstance(value, str) and value and value in previous.request]
    named = [value for value in texts if find_time_zone(value) != value]
    is_other_thing = not _FILE.search(match[0]) and not any(map(object_of, previous.calls[-1:]))
    referent = named[0] if named and is_other_thing else next(objects, "")
    return _replaced(request, match, referent) if referent else ""


def _replaced(request: str, match: re.Match[str], text: str) -> str:
    """Return the request with a text in place of a match; empty if the text could end its quotes and be read as words.

    The text may come from a result, so it is untrusted.
    """
    if _UNSAFE.search(text):
        return ""
    quoted = f'"{text}"' if _SEPARATOR.search(text) else text
    return f"{request[: match.start()]}{quoted}{request[match.end() :]}"


def _with_change(request: str, previous: PreviousTurn, now: datetime) -> str:
    """Return the previous request with the changes of this one; empty if this one states something else."""
    lead = _LEAD.match(request)
    rest = request[lead.end() :].strip() if lead else after_verdict(request)
    words = unquoted_words(rest)
    corrects = lead or rest != request.strip() or CORRECTING_WORDS.intersection(words)
    if not rest or not corrects or len(words) > _MAX_WORDS or KNOWN_VERBS.intersection(words) or is_question(rest):
        return ""
    change = None
    if previous.call:
        from packetgate.reflex.changes import read_change  # numpy is slow to load

        change = read_change(request, *previous.call, previous.request, now)
    if change and change.is_all and not (lead and change.names_argument) and change.request:
        return change.request
    new, old = mentions_in(rest), mentions_in(previous.request)
    for now_named, then_named in ((new.urls, old.urls), (new.paths, old.paths)):
        if len(now_named) == 1 and then_named:
            return now_named[0].join(previous.request.rsplit(then_named[-1], 1))
    place = _PLACE.match(rest)
    if place is None:
        return ""
    ends = r"(?=\s+(?:in|to|from|for|on|at|when|if)\b|[,;?!.]*$|[,;?!])"
    spots = [*re.finditer(rf"\b{place[1]}\s+([^,;?!]+?){ends}", previous.request, re.IGNORECASE)]
    if not spots:
        return ""
    return f"{previous.request[: spots[-1].start(1)]}{place[2]}{previous.request[spots[-1].end(1) :]}"


def object_of(call: ToolCall) -> str:
    """Return the file, page or other thing that a call was about; empty if that is unclear."""
    targets = [value for name, value in call.params.items() if isinstance(value, str) and _is_target(name, value)]
    listed = listed_by(call)
    if targets and ("." in targets[-1].rpartition("/")[2] or len(listed) != 1):
        return targets[-1]  # the last one is where a file was copied or moved to
    return listed[0] if len(listed) == 1 else ""


def listed_by(call: ToolCall) -> Sequence[str]:
    """Return the names of the entries that a call returned, without duplicates."""
    if call.status is not ToolExecutionStatus.EXECUTED or call.result is None:
        return ()
    fields, text = call.result.fields, call.result.output
    names = [*_names_in(fields)]
    if not names and text[:1] in ("[", "{"):
        names = [*_names_in(_read(text))]
    return tuple(dict.fromkeys(names or _paths_in(text)))


def _is_target(name: str, value: str) -> bool:
    if "\n" in value or role_of((name,), {}, None) is ArgumentRole.PAYLOAD:
        return False
    return mentions_in(value).has_target and find_time_zone(value) != value


def _names_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        value = next((one for one in value.values() if isinstance(one, list) and one), [])
    for entry in value if isinstance(value, list) else []:
        named = [entry.get(name) for name in _NAMES] if isinstance(entry, dict) else [entry]
        name = next((one for one in named if isinstance(one, str) and one), "")
        if name and len(name) <= _MAX_NAME_CHARS and "\n" not in name:
            yield name


def _read(text: str) -> Any:
    try:
        return read_nearly_json(text)
    except (PacketgateError, ValueError):
        return None


def _paths_in(text: str) -> Iterator[str]:
    for line in text.splitlines():
        bullet = _BULLET.match(line)
        rest = line[bullet.end() :] if bullet else line
        path = next(iter(mentions_in(rest).paths), "")
        if path and rest.startswith(path):
            yield path
