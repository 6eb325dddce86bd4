"""The evidence about a call's values: the user's words, fields of outputs, and free text."""

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

from packetgate.gate.provenance.own_words import UserWords
from packetgate.state.origins import FlowLabel
from packetgate.state.printing import escaped
from packetgate.state.routing import Risk, ToolCall, ToolResult
from packetgate.tools.text.argument_words import WORDS
from packetgate.tools.text.hosts import host_in, hosts_in
from packetgate.tools.text.values import (
    Leaf,
    NormalizedValue,
    find_words,
    fold_text,
    is_address,
    is_mail,
    keys_in,
    leaves,
    normalized_values_in,
    plain_text,
)
from packetgate.tools.text.words import words_of

_MAX_FIELD_WORDS = 8
"""Maximum number of words in a field; a longer text is free text."""
_MAX_FIELD_CHARS = 200
_MAX_SENTENCE_CHARS = 300
_NEAR_CHARS = 400
"""Distance from a value, in characters, within which instructions are searched."""
_MAX_PLACES = 200
_MAX_DEPTH = 32
_BULLET = re.compile(r"^(?:[-*\u2022]|\d{1,4}[.)]|\[[\w ]{1,12}\])\s+")
_LABEL = re.compile(r"^[\w ()/-]{1,40}: +(?=\S)")
_SENTENCE_END = re.compile(r"[.!?]\s")
_FILE = re.compile(r"[\w -]{1,200}\.\w{1,5}")


@dataclass(frozen=True)
class OutputField:
    """A complete field of a structured output."""

    tool: str
    written: str
    """The value as written."""
    is_free_text: bool = False
    """Whether the field's author chooses its words, such as a subject."""
    listed_for: str | None = None
    """If a listing returned the field: the server whose reads may access an address in it; "" means any server."""

    @cached_property
    def text(self) -> str:
        """The value, folded."""
        return fold_text(self.written)


@dataclass(frozen=True)
class FreeText:
    """Free text of an output, an attachment or an earlier message, on one line."""

    tool: str
    text: str
    is_named: bool = False
    """Whether the text is a document whose address or path is in the user's words."""
    call: ToolCall | None = field(default=None, compare=False, repr=False)
    """The call that returned the text."""

    @cached_property
    def folded(self) -> str:
        """The text in lower case, with the same length."""
        lower = self.text.lower()
        return lower if len(lower) == len(self.text) else "".join(char.lower()[:1] or char for char in self.text)

    @cached_property
    def normalized_values(self) -> dict[NormalizedValue, tuple[int, int]]:
        """The numbers, dates and accounts in the text, each with its first start and end."""
        return normalized_values_in(self.folded)

    @cached_property
    def sentence_ends(self) -> list[int]:
        """The ends of all sentences."""
        return [*(match.end() for match in _SENTENCE_END.finditer(self.text)), len(self.text)]


@dataclass(frozen=True)
class TextPlace:
    """A part of a free text."""

    source: FreeText
    start: int
    end: int

    @property
    def sentence(self) -> str:
        """The sentence of this part, folded, cut to the text nearby."""
        first, last = self._bounds
        return self.source.folded[max(first, self.start - _NEAR_CHARS) : min(last, self.end + _NEAR_CHARS)]

    def quoted(self) -> tuple[str, str]:
        """Return the sentence, cut if it is long, and the part; names replace control characters."""
        text = self.source.text
        start, end = self._bounds
        first = max(start, self.start - _MAX_SENTENCE_CHARS // 2)
        last = max(min(end, first + _MAX_SENTENCE_CHARS), min(self.end, self.start + _MAX_SENTENCE_CHARS))
        sentence = f"{'…' if first > start else ''}{text[first:last].strip()}{'…' if last < end else ''}"
        return escaped(sentence), escaped(text[self.start : min(self.end, last)])

    @property
    def _bounds(self) -> tuple[int, int]:
        ends = self.source.sentence_ends
        at = bisect_right(ends, self.start)
        return ends[at - 1] if at else 0, ends[bisect_left(ends, self.end)]


@dataclass(frozen=True)
class FlagReason:
    """The reason why an argument is flagged, with its place in free text or, without a place, the text to mark."""

    why: str
    place: TextPlace | None = None
    flagged_part: str = ""


@dataclass(frozen=True)
class SourceTexts:
    """The evidence of a session about the values of its next calls, newest first."""

    user: UserWords
    request: str = ""
    """The user's words that may ask for the next call, folded."""
    fields: tuple[OutputField, ...] = ()
    free_texts: tuple[FreeText, ...] = ()
    labels: Mapping[FlowLabel, str] = field(default_factory=dict)
    """The session's labels, each with the tool, attachment or message that set it."""
    client_words: bool = False
    """Whether a client that had read outputs wrote `user`: such words name no destination of a read."""
    earlier: tuple[ToolCall, ...] = ()
    """The earlier calls of the session, oldest first."""

    @property
    def destinations(self) -> UserWords:
        """The words that name destinations of reads."""
        return UserWords("") if self.client_words else self.user

    def is_listed(self, address: str, server: str) -> bool:
        """Return whether a listing that is valid for the server contains exactly this address."""
        is_one = is_address(address) or ("://" in address and bool(host_in(address)))
        return is_one and any(one.written == address and one.listed_for in {"", server} for one in self.fields)

    def places_of(self, *texts: str) -> Iterator[TextPlace]:
        """Yield the places of folded texts in free text, at most `_MAX_PLACES`."""
        left = _MAX_PLACES
        for source, text in product(self.free_texts, texts):
            at = find_words(source.folded, text)
            while at >= 0 and left:
                yield TextPlace(source, at, at + len(text))
                at, left = find_words(source.folded, text, at + 1), left - 1

    def places_of_values(self, *options: Iterable[NormalizedValue]) -> Iterator[TextPlace]:
        """Yield the first place in each free text of one of these numbers, accounts or dates, in any notation."""
        for source, values in product(self.free_texts, options):
            yield from (
                TextPlace(source, *source.normalized_values[one]) for one in values if one in source.normalized_values
            )

    def is_server_field(self, text: str, server: str) -> bool:
        """Return whether this server returned a folded text as a field that is not free text."""
        prefix = f"{server}."
        return any(one.text == text and one.tool.startswith(prefix) and not one.is_free_text for one in self.fields)

    @cached_property
    def named_texts(self) -> frozenset[str]:
        """The free texts of records, such as mails, whose address and title are both in the user's words."""
        return frozenset(
            plain_text(text)
            for call in self.earlier
            for record in (
                _records_in(call.result.structured or _parsed_json(call.result.server_text)) if call.result else ()
            )
            for texts in [[value for value in record.values() if isinstance(value, str)]]
            for stated in [[one for one in texts if _is_field(one) and self.user.contain(fold_text(one))]]
            if any(map(is_address, stated)) and any(" " in one for one in stated)
            for text in texts
            if not _is_field(text)
        )

    @cached_property
    def fields_by_value(self) -> dict[str | NormalizedValue, OutputField]:
        """The newest field of each text, number, account or date; a field that is not free text is preferred."""
        fields: dict[str | NormalizedValue, OutputField] = {}
        for one in sorted(self.fields, key=lambda field: field.is_free_text):
            fields.setdefault(one.text, one)
            for value, (start, end) in normalized_values_in(one.text).items():
                is_whole = start == 0 and (value[0] == "day" or end == len(one.text))
                if is_whole and not (value[0] == "account" and one.is_free_text):
                    fields.setdefault(value, one)
        return fields


def is_listing(tool: str) -> bool:
    """Return whether a tool with this name lists or searches."""
    return not WORDS["lists"].isdisjoint(words_of(tool))


def sources_in_calls(calls: Iterable[ToolCall], user: UserWords) -> list[OutputField | FreeText]:
    """Return the fields and texts in the results of `calls` (oldest first), newest call first.

    Addresses whose host is in the arguments of the same or an earlier call are left out, because a server may repeat
    its arguments. Hosts that the user named, and addresses that a listing returned before, do not count as arguments.
    """
    found: list[list[OutputField | FreeText]] = []
    listed, given = set[str](), set[str]()
    for call in calls:
        read = _read_call(call, user)
        given.update(host for text, hosts in read.hosts if text not in listed for host in hosts)
        sources = [
            source
            for source, hosts in read.sources
            if not (hosts and any(host == one or host.endswith(f".{one}") for host in hosts for one in given))
        ]
        listed |= {one.written for one in sources if isinstance(one, OutputField) and one.listed_for is not None}
        found.insert(0, sources)
    return [source for sources in found for source in sources]


class _ReadCall(NamedTuple):
    """The hosts in a call's arguments, and the fields and texts of its result."""

    hosts: list[tuple[str, set[str]]]
    """The arguments with a host that the user did not name, and these hosts."""
    sources: list[tuple[OutputField | FreeText, set[str]]]
    """Fields and texts, without addresses that the arguments contain, and the hosts of fields that are addresses."""


_MAX_READ = 100
_read_calls: dict[tuple[int, str], tuple[ToolCall, _ReadCall]] = {}
"""Parsed calls, by the `id` of a call and the user's words. The call is kept, so that its id is not reused."""


def _read_call(call: ToolCall, user: UserWords) -> _ReadCall:
    """Return the hosts, fields and texts of a call. Each call is parsed once: all later calls are traced to it."""
    key = id(call), user.text
    known = _read_calls.get(key)
    if known is None:
        texts = [*keys_in(call.params), *(str(leaf.value) for leaf in leaves(call.params))]
        hosts = ((text, {host for host in hosts_in(text) if not user.domain_of(host)}) for text in texts)
        arguments, sources = fold_text("\n".join(texts)), list[tuple[OutputField | FreeText, set[str]]]()
        for source in _all_sources_in(call, user) if call.result else ():
            if not (isinstance(source, OutputField) and ("://" in source.text or is_address(source.text))):
                sources.append((source, set()))
            elif source.text not in arguments:
                sources.append((source, set() if is_mail(source.text) else hosts_in(source.written)))
        known = _read_calls[key] = call, _ReadCall([one for one in hosts if one[1]], sources)
        if len(_read_calls) > _MAX_READ:
            with suppress(KeyError, StopIteration, RuntimeError):  # another thread was faster
                del _read_calls[next(iter(_read_calls))]
    return known[1]


def _all_sources_in(call: ToolCall, user: UserWords) -> Iterator[OutputField | FreeText]:
    """Yield the fields and texts of a result. The text that a call reads from an address or a file is one free text.

    In a search that is known to return only public text, a line such as `URL: https://example.org` is a field.
    """
    result, tool, lists = call.result or ToolResult(success=False), call.tool_name, is_listing(call.tool_name)
    texts = [leaf.value for leaf in leaves(call.params) if isinstance(leaf.value, str) and len(leaf.value) < 2_000]
    documents = [text for text in texts if is_address(text) or "/" in text or _FILE.fullmatch(text)]
    documents = [] if lists or call.apparent_risk is not Risk.READ else documents
    listed_for = None if not lists or not result.success else "" if call.open_world else tool.partition(".")[0]
    parsed = None if documents else _parsed_json(result.server_text)
    for value in (result.structured if result.success else None, parsed):
        for leaf in (*(Leaf((), key) for key in keys_in(value)), *leaves(value)):
            text = leaf.value if isinstance(leaf.value, str) else json.dumps(leaf.value)
            line, is_field = plain_text(text), _is_field(text)
            key_words = {word.removesuffix("s") for key in leaf.keys[-1:] for word in words_of(key)}
            is_free_text = not key_words.isdisjoint(WORDS["free_text_keys"])
            if is_field and line:
                yield OutputField(tool, text, is_free_text, None if is_free_text or not leaf.keys else listed_for)
            if not is_field or (line and (is_free_text or len(line.split()) > 2)):
                yield FreeText(tool, line, call=call)
    if parsed is None:
        is_named = any(user.contain(fold_text(name)) for name in documents)
        yield FreeText(tool, plain_text(result.server_text), is_named, call)
        lines = [line.strip() for line in result.server_text.splitlines() if line.strip()]
        is_list = lists and all(
            _is_field(line) and not (len(line.split()) > 3 and _SENTENCE_END.search(f"{line} ")) for line in lines
        )
        is_public = listed_for == "" and FlowLabel.PRIVATE not in call.result_labels
        for line in lines if lists else ():
            bare = _BULLET.sub("", line)
            value = _LABEL.sub("", bare)
            is_address_line = is_public and "://" in value and bool(host_in(value))
            for text in {line, bare, value} if is_list else {value} if is_address_line else ():
                yield OutputField(tool, text, listed_for="" if is_address_line else None)


def _parsed_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _records_in(value: Any, depth: int = 0) -> Iterator[Mapping[str, Any]]:
    if depth <= _MAX_DEPTH and isinstance(value, Mapping | list):
        if isinstance(value, Mapping):
            yield value
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _records_in(part, depth + 1)


def _is_field(text: str) -> bool:
    is_short = len(text) <= _MAX_FIELD_CHARS and len(text.split()) <= _MAX_FIELD_WORDS
    return (is_short and "\n" not in text.strip()) or ("://" in text and bool(host_in(text)))
