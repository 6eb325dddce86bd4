"""What a call's values may have been taken from: the user's words, fields of outputs, and free text."""

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from itertools import islice
from typing import Any

from langchain_core.messages import AIMessage

from packetgate.state.packet import CognitionPacket, is_client_supplied
from packetgate.state.printing import escaped
from packetgate.state.routing import Risk, ToolCall
from packetgate.tools.provenance.values import (
    SPELT,
    Day,
    accounts_in,
    beside_host,
    days_in,
    find,
    folded,
    is_account,
    is_address,
    leaves,
    numbers_in,
    plain,
    squeezed,
)
from packetgate.tools.provenance.words import FREE_TEXT_KEYS, LISTS
from packetgate.tools.text.words import words_of

FIELD_WORDS = 8
"""Words of the longest text that is a field's value and not free text."""
FIELD_CHARS = 200
MAX_KEPT = 50
SENTENCE_CHARS = 300
NEAR_CHARS = 400
"""How far around a value an instruction is looked for."""
SECRET_CHARS = 8
MAX_SECRETS = 20_000
_SECRET = re.compile(r"[a-z0-9][a-z0-9+/_=.-]{7,}")
_LABEL = re.compile(r"^[\w ()/-]{1,40}: +(?=\S)")
_BULLET = re.compile(r"^(?:[-*\u2022]|\d{1,4}[.)]|\[[\w ]{1,12}\])\s+")
_SENTENCE_END = re.compile(r"[.!?]\s")
_FILE = re.compile(r"[\w -]{1,200}\.\w{1,5}")


@dataclass(frozen=True)
class Field:
    """A whole value of a structured output."""

    tool: str
    server: str
    text: str
    """Folded."""
    worded: bool = False
    """Whether somebody words it as they like, such as a subject."""


@dataclass(frozen=True)
class Passage:
    """Free text of an output."""

    tool: str
    server: str
    text: str
    """On one line."""
    is_named: bool = False
    """Whether it is a document that the user named by its address or its path."""

    @cached_property
    def folded(self) -> str:
        """The text as it is compared."""
        lower = self.text.lower()
        return lower if len(lower) == len(self.text) else "".join(char.lower()[:1] or char for char in self.text)

    @cached_property
    def numbers(self) -> dict[Decimal, tuple[int, int]]:
        """Where each number stands first."""
        return {value: (start, end) for value, start, end in reversed([*numbers_in(self.folded)])}

    @cached_property
    def accounts(self) -> dict[str, tuple[int, int]]:
        """Where each IBAN and phone number stands first."""
        return accounts_in(self.folded)

    @cached_property
    def days(self) -> list[tuple[Day, int, int]]:
        """The dates, and where they stand."""
        return [*days_in(self.folded)]

    @cached_property
    def _ends(self) -> list[int]:
        return [match.end() for match in _SENTENCE_END.finditer(self.text)]

    def around(self, start: int, end: int, *, before: int) -> str:
        """Return the sentence around a place and so many before it, folded and bounded."""
        at = bisect_right(self._ends, start)
        first = self._ends[at - 1 - before] if at > before else 0
        last = next((one for one in self._ends[at:] if one >= end), len(self.text))
        return self.folded[max(first, start - NEAR_CHARS) : min(last, end + NEAR_CHARS)]

    def sentence(self, start: int, end: int) -> tuple[str, str]:
        """Return the sentence around a place, bounded, and what stands at the place; control characters by name."""
        at = bisect_right(self._ends, start)
        first = max(self._ends[at - 1] if at else 0, start - SENTENCE_CHARS // 2)
        last = next((one for one in self._ends[at:] if one >= end), len(self.text))
        last = max(min(last, first + SENTENCE_CHARS), min(end, start + SENTENCE_CHARS))
        cut = (
            "…" if first and first not in self._ends else "",
            "…" if last < len(self.text) and last not in self._ends else "",
        )
        marked = self.text[start : min(end, last)]
        return escaped(f"{cut[0]}{self.text[first:last].strip()}{cut[1]}"), escaped(marked)


@dataclass(frozen=True)
class Words:
    """The user's own words."""

    folded: str

    @cached_property
    def numbers(self) -> frozenset[Decimal]:
        """The numbers in them, those in words too; not `one`, which hardly ever counts."""
        spelt = (Decimal(SPELT[word]) for word in self.folded.split() if SPELT.get(word, 1) > 1)
        return frozenset([*(value for value, _, _ in numbers_in(self.folded)), *spelt])

    @cached_property
    def days(self) -> list[Day]:
        """The dates in them."""
        return [day for day, _, _ in days_in(self.folded)]

    @cached_property
    def accounts(self) -> frozenset[str]:
        """The IBANs and phone numbers in them."""
        return frozenset(accounts_in(self.folded))

    def say(self, text: str) -> bool:
        """Whether a folded text stands in them as words of its own."""
        return find(self.folded, text) >= 0


@dataclass(frozen=True)
class Evidence:
    """All that a turn knows. What came later stands first."""

    user: Words
    fields: tuple[Field, ...] = ()
    passages: tuple[Passage, ...] = ()
    sent: tuple[str, ...] = field(default=())
    """What this turn's earlier calls sent outside without the user having seen it, oldest first."""
    picture: str = ""
    """The name of a picture that the user attached, and a model may have read."""

    def having_sent(self, params: Mapping[str, Any]) -> "Evidence":
        """Return it with what one more call sends outside."""
        return replace(self, sent=(*self.sent, *(beside_host(str(leaf.value)) for leaf in leaves(params))))

    @cached_property
    def fields_by_text(self) -> dict[str, Field]:
        """The fields by their values; of several the latest, one that nobody words first."""
        found: dict[str, Field] = {}
        for one in self.fields:
            known = found.get(one.text)
            if known is None or (known.worded and not one.worded):
                found[one.text] = one
        return found

    @cached_property
    def letters(self) -> list[tuple[str, str]]:
        """All outputs as letters and digits alone, each with its tool."""
        texts = [(one.tool, one.folded) for one in self.passages] + [(one.tool, one.text) for one in self.fields]
        return [(tool, letters) for tool, text in texts if len(letters := squeezed(text)) >= SECRET_CHARS]

    @cached_property
    def secrets(self) -> list[tuple[str, str]]:
        """What looks like keys and codes in the outputs, as letters and digits alone, each with its tool."""
        found: dict[str, str] = {}
        texts = [(one.tool, one.folded) for one in self.passages] + [(one.tool, one.text) for one in self.fields]
        for tool, text in texts:
            for match in _SECRET.finditer(text):
                token = squeezed(match[0])
                if len(token) >= SECRET_CHARS and len(found) < MAX_SECRETS and any(map(str.isdigit, token)):
                    found.setdefault(token, tool)
        return [(tool, token) for token, tool in found.items()]

    @cached_property
    def field_numbers(self) -> dict[Decimal, Field]:
        """The numbers that are whole fields."""
        return {
            value: one
            for one in reversed(self.fields)
            for value, start, end in numbers_in(one.text)
            if (start, end) == (0, len(one.text))
        }

    @cached_property
    def field_accounts(self) -> dict[str, Field]:
        """The IBANs and phone numbers that are whole fields."""
        return {squeezed(one.text): one for one in reversed(self.fields) if is_account(one.text) and not one.worded}

    def is_own_field(self, text: str, server: str) -> bool:
        """Whether a folded text is a whole field of what a server itself returned: it may have it back."""
        return any(one.text == text and one.server == server and not one.worded for one in self.fields)

    def links_to(self, address: str) -> bool:
        """Whether a folded address stands in an output as it is: then nothing was put into it."""
        return any(find(one.folded, address) >= 0 for one in self.passages)

    @cached_property
    def field_days(self) -> list[tuple[Day, Field]]:
        """The dates that fields begin with."""
        return [
            (day, one) for one in self.fields if len(one.text) < 40 for day, start, _ in days_in(one.text) if not start
        ]


def evidence_of(packet: CognitionPacket) -> Evidence:
    """Return what a packet knows before its next calls are made."""
    user = Words(folded(packet.spoken))
    earlier = [call for call in packet.routing.all_calls if call.result is not None]
    sources = [part for call in reversed(earlier) for part in _of_call(call, user)]
    for entry in reversed(packet.context.result_ledger):
        if entry.packet_id != packet.header.packet_id:
            document = _is_document(entry.tool_name, entry.params)
            said = entry.summary if entry.said is None else entry.said
            sources += _of_output(entry.tool_name, said, is_document=document)
            server = entry.tool_name.partition(".")[0]
            sources += [Field(entry.tool_name, server, one) for one in entry.fields]
    for attachment in packet.content.attachments:  # nobody can tell what stands in a picture
        sources.append(Passage(f"the attached {attachment.name}", "", plain(attachment.text)))
    for message in reversed(packet.conversation):
        if message.text and (isinstance(message, AIMessage) or is_client_supplied(message)):
            what = "an earlier message of the conversation" if is_client_supplied(message) else "an earlier answer"
            sources.append(Passage(what, "", plain(message.text)))
    quiet = [call for call in earlier if call.open_world and not call.is_flagged]
    sent = [beside_host(str(leaf.value)) for call in quiet for leaf in leaves(call.params)]
    return Evidence(
        user=user,
        fields=tuple(one for one in sources if isinstance(one, Field)),
        passages=tuple(one for one in sources if isinstance(one, Passage)),
        sent=tuple(sent),
        picture=next((one.name for one in packet.content.attachments if one.is_picture), ""),
    )


def address_fields(call: ToolCall) -> tuple[str, ...]:
    """Return the addresses that are whole fields of what a call returned, for later turns; at most `MAX_KEPT`."""
    parts = _of_call(call, Words(""))
    found = (one.text for one in parts if isinstance(one, Field) and not one.worded and is_address(one.text))
    return tuple(islice(dict.fromkeys(found), MAX_KEPT))


def _of_call(call: ToolCall, user: Words) -> Iterator[Field | Passage]:
    result = call.result
    if result is None:
        return
    document = call.looks is Risk.READ and _is_document(call.tool_name, call.params)
    named = document and any(user.say(folded(one)) for one in _documents(call.params))
    if result.structured is not None and result.success:
        yield from _of_value(call.tool_name, result.structured)
    for part in _of_output(call.tool_name, result.foreign, is_document=document):
        yield replace(part, is_named=True) if named and isinstance(part, Passage) else part


def _is_document(tool: str, params: Mapping[str, Any]) -> bool:
    """Whether a call returns what stands at an address or in a file: all of it is what its writer pleased."""
    return not {*words_of(tool)} & LISTS and bool(_documents(params))


def _documents(params: Mapping[str, Any]) -> list[str]:
    """Return the addresses and paths among the arguments."""
    texts = [leaf.value for leaf in leaves(params) if isinstance(leaf.value, str) and len(leaf.value) < 2_000]
    return [one for one in texts if is_address(one) or "/" in one or _FILE.fullmatch(one)]


def _of_output(tool: str, text: str, *, is_document: bool) -> Iterator[Field | Passage]:
    server = tool.partition(".")[0]
    if is_document:
        yield Passage(tool, server, plain(text))
        return
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        yield from _of_lines(tool, server, text)
        return
    yield from _of_value(tool, value)


def _of_value(tool: str, value: Any) -> Iterator[Field | Passage]:
    server = tool.partition(".")[0]
    for key in _keys(value):
        yield from _of_leaf(tool, server, key, "")
    for leaf in leaves(value):
        key = leaf.keys[-1] if leaf.keys else ""
        yield from _of_leaf(tool, server, leaf.value if isinstance(leaf.value, str) else json.dumps(leaf.value), key)


def _keys(value: Any, depth: int = 0) -> Iterator[str]:
    if depth > 32:
        return
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield str(key)
            yield from _keys(inner, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            yield from _keys(inner, depth + 1)


def _of_leaf(tool: str, server: str, text: str, key: str) -> Iterator[Field | Passage]:
    line = plain(text)
    worded = any(word.removesuffix("s") in FREE_TEXT_KEYS for word in words_of(key))
    if _is_field(text) and line:
        yield Field(tool, server, line.lower(), worded)
    if not _is_field(text) or (line and (worded or len(line.split()) > 2)):
        yield Passage(tool, server, line)


def _is_field(text: str) -> bool:
    return "\n" not in text.strip() and len(text) <= FIELD_CHARS and len(text.split()) <= FIELD_WORDS


def _of_lines(tool: str, server: str, text: str) -> Iterator[Field | Passage]:
    """Yield a text, and of one that lists names its lines as well."""
    yield Passage(tool, server, plain(text))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if {*words_of(tool)} & LISTS and all(_is_field(line) and not _is_sentence(line) for line in lines):
        for line in lines:
            bare = _BULLET.sub("", line)
            for value in {line, bare, _LABEL.sub("", bare)}:
                yield Field(tool, server, folded(value))


def _is_sentence(line: str) -> bool:
    return len(line.split()) > 3 and _SENTENCE_END.search(f"{line} ") is not None
