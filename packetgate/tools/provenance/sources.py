"""The texts that the values of a call may come from: the user's words, fields of outputs, and free text."""

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from itertools import islice
from typing import Any

from langchain_core.messages import AIMessage

from packetgate.state.packet import CognitionPacket, is_client_supplied
from packetgate.state.printing import escaped
from packetgate.state.routing import Risk, ToolCall
from packetgate.tools.provenance.values import (
    DATE_CHARS,
    NUMBER_WORDS,
    Form,
    find_words,
    fold_text,
    forms_in,
    is_address,
    leaves,
    plain_text,
    squeeze_text,
    without_host,
)
from packetgate.tools.provenance.words import WORDS
from packetgate.tools.text.words import words_of

_FIELD_WORDS = 8
"""Most words of a text that counts as a field's value and not as free text."""
_FIELD_CHARS = 200
_MAX_ADDRESSES = 50
_SENTENCE_CHARS = 300
_NEAR_CHARS = 400
"""Distance from a value, in characters, within which an instruction is searched."""
_SECRET_CHARS = 8
_MAX_SECRETS = 20_000
_MAX_PLACES = 200
_SECRET = re.compile(r"[a-z0-9][a-z0-9+/_=.-]{7,}")
_LABEL = re.compile(r"^[\w ()/-]{1,40}: +(?=\S)")
_BULLET = re.compile(r"^(?:[-*\u2022]|\d{1,4}[.)]|\[[\w ]{1,12}\])\s+")
_SENTENCE_END = re.compile(r"[.!?]\s")
_FILE = re.compile(r"[\w -]{1,200}\.\w{1,5}")
_MAX_KEY_DEPTH = 32


@dataclass(frozen=True)
class OutputField:
    """A complete value of a structured output."""

    tool: str
    text: str
    """The value, folded by `fold_text`."""
    is_free_text: bool = False
    """Whether the field is free text, such as a subject."""


@dataclass(frozen=True)
class Passage:
    """Free text of an output, on one line."""

    tool: str
    text: str
    is_named: bool = False
    """Whether the text is a document whose address or path the user stated."""

    @cached_property
    def folded(self) -> str:
        """The text in lower case, with the same length."""
        lower = self.text.lower()
        return lower if len(lower) == len(self.text) else "".join(char.lower()[:1] or char for char in self.text)

    @cached_property
    def forms(self) -> dict[Form, tuple[int, int]]:
        """The first place of each number, date and account."""
        return forms_in(self.folded)

    @cached_property
    def sentence_ends(self) -> list[int]:
        """The ends of all sentences except the last."""
        return [match.end() for match in _SENTENCE_END.finditer(self.text)]


@dataclass(frozen=True)
class TextPlace:
    """A place in a passage."""

    passage: Passage
    start: int
    end: int

    def sentences(self, before: int) -> str:
        """Return the sentence of the place and a number of sentences before it, folded and limited."""
        first, last = self._bounds(before)
        return self.passage.folded[max(first, self.start - _NEAR_CHARS) : min(last, self.end + _NEAR_CHARS)]

    def quoted(self) -> tuple[str, str]:
        """Return the sentence of the place, limited, and the text at the place; control characters by name."""
        text = self.passage.text
        start, end = self._bounds(0)
        first = max(start, self.start - _SENTENCE_CHARS // 2)
        last = max(min(end, first + _SENTENCE_CHARS), min(self.end, self.start + _SENTENCE_CHARS))
        sentence = f"{'…' if first > start else ''}{text[first:last].strip()}{'…' if last < end else ''}"
        return escaped(sentence), escaped(text[self.start : min(self.end, last)])

    def _bounds(self, before: int) -> tuple[int, int]:
        ends = self.passage.sentence_ends
        at = bisect_right(ends, self.start)
        first = ends[at - 1 - before] if at > before else 0
        return first, next((end for end in ends[at:] if end >= self.end), len(self.passage.text))


@dataclass(frozen=True)
class Finding:
    """Why an argument is flagged, with the place in free text or, if there is none, the text to mark."""

    why: str
    place: TextPlace | None = None
    marked: str = ""


@dataclass(frozen=True)
class UserWords:
    """The user's own words."""

    folded: str

    @cached_property
    def forms(self) -> frozenset[Form]:
        """The numbers, dates and accounts in the user's words; number words count, except `one`."""
        spelt = (NUMBER_WORDS[word] for word in self.folded.split() if NUMBER_WORDS.get(word, 1) > 1)
        return frozenset([*forms_in(self.folded), *(("number", Decimal(number)) for number in spelt)])

    def contain(self, text: str) -> bool:
        """Return whether the user's words contain a folded text as separate words."""
        return find_words(self.folded, text) >= 0


@dataclass(frozen=True)
class SourceTexts:
    """The texts known in a turn, the newest first."""

    user: UserWords
    fields: tuple[OutputField, ...] = ()
    passages: tuple[Passage, ...] = ()
    sent: tuple[str, ...] = ()
    """Texts that earlier calls of this turn sent outside without approval, oldest first."""
    picture: str = ""
    """The name of a picture that the user attached: a model may have read it."""

    def having_sent(self, params: Mapping[str, Any]) -> "SourceTexts":
        """Return the sources after one more call sent its arguments outside."""
        return replace(self, sent=(*self.sent, *(without_host(str(leaf.value)) for leaf in leaves(params))))

    def places_of(self, text: str) -> Iterator[TextPlace]:
        """Yield the places of a folded text in free text, at most `_MAX_PLACES`."""
        left = _MAX_PLACES
        for passage in self.passages:
            at = find_words(passage.folded, text)
            while at >= 0 and left:
                yield TextPlace(passage, at, at + len(text))
                left -= 1
                at = find_words(passage.folded, text, at + 1)

    def is_own_field(self, text: str, server: str) -> bool:
        """Return whether a folded text is a field that a server returned itself, and that is not free text."""
        own = f"{server}."
        return any(one.text == text and one.tool.startswith(own) and not one.is_free_text for one in self.fields)

    @cached_property
    def fields_by_text(self) -> dict[str, OutputField]:
        """The newest field with each value; a field that is not free text is preferred."""
        found: dict[str, OutputField] = {}
        for field in self.fields:
            known = found.get(field.text)
            if known is None or (known.is_free_text and not field.is_free_text):
                found[field.text] = field
        return found

    @cached_property
    def fields_by_form(self) -> dict[Form, OutputField]:
        """The newest field that is a number or an account, or begins with a date."""
        return {
            form: field
            for field in reversed(self.fields)
            for form, (start, end) in forms_in(field.text).items()
            if start == 0 and not (form[0] == "account" and field.is_free_text)
            if (len(field.text) < DATE_CHARS if form[0] == "day" else end == len(field.text))
        }

    @cached_property
    def letters(self) -> list[tuple[str, str]]:
        """The tool and the squeezed text of each output."""
        texts = ((tool, squeeze_text(text)) for tool, text in self._outputs)
        return [(tool, letters) for tool, letters in texts if len(letters) >= _SECRET_CHARS]

    @cached_property
    def secrets(self) -> list[tuple[str, str]]:
        """The tool and the squeezed text of each possible key or code in the outputs."""
        tools: dict[str, str] = {}
        for tool, text in self._outputs:
            for match in _SECRET.finditer(text):
                token = squeeze_text(match[0])
                if len(token) >= _SECRET_CHARS and len(tools) < _MAX_SECRETS and any(map(str.isdigit, token)):
                    tools.setdefault(token, tool)
        return [(tool, token) for token, tool in tools.items()]

    @property
    def _outputs(self) -> list[tuple[str, str]]:
        return [(one.tool, one.folded) for one in self.passages] + [(one.tool, one.text) for one in self.fields]


def source_texts(packet: CognitionPacket) -> SourceTexts:
    """Return the sources of a packet before its next calls are made."""
    user = UserWords(fold_text(packet.session_words))
    earlier = [call for call in packet.routing.all_calls if call.result is not None]
    sources = [source for call in reversed(earlier) for source in _of_call(call, user)]
    for entry in reversed(packet.context.result_ledger):
        if entry.packet_id != packet.header.packet_id:
            text = entry.summary if entry.server_part is None else entry.server_part
            is_document = _is_document(entry.tool_name, entry.params)
            sources += _of_output(entry.tool_name, text, is_document=is_document)
            sources += [OutputField(entry.tool_name, field) for field in entry.fields]
    for attachment in packet.content.attachments:
        sources.append(Passage(f"the attached {attachment.name}", plain_text(attachment.text)))
    for message in reversed(packet.conversation):
        is_supplied = is_client_supplied(message)
        if message.text and (is_supplied or isinstance(message, AIMessage)):
            what = "an earlier message of the conversation" if is_supplied else "an earlier answer"
            sources.append(Passage(what, plain_text(message.text)))
    unasked = [call for call in earlier if call.open_world and not call.is_flagged]
    return SourceTexts(
        user=user,
        fields=tuple(source for source in sources if isinstance(source, OutputField)),
        passages=tuple(source for source in sources if isinstance(source, Passage)),
        sent=tuple(without_host(str(leaf.value)) for call in unasked for leaf in leaves(call.params)),
        picture=next((one.name for one in packet.content.attachments if one.is_picture), ""),
    )


def address_fields(call: ToolCall) -> tuple[str, ...]:
    """Return the addresses that are fields of a call's output, for later turns; at most `_MAX_ADDRESSES`."""
    fields = (
        source
        for source in _of_call(call, UserWords(""))
        if isinstance(source, OutputField) and not source.is_free_text
    )
    addresses = (field.text for field in fields if is_address(field.text))
    return tuple(islice(dict.fromkeys(addresses), _MAX_ADDRESSES))


def _of_call(call: ToolCall, user: UserWords) -> Iterator[OutputField | Passage]:
    result = call.result
    if result is None:
        return
    is_document = call.apparent_risk is Risk.READ and _is_document(call.tool_name, call.params)
    is_named = is_document and any(user.contain(fold_text(text)) for text in _documents(call.params))
    if result.structured is not None and result.success:
        yield from _of_value(call.tool_name, result.structured)
    for source in _of_output(call.tool_name, result.server_text, is_document=is_document):
        yield replace(source, is_named=True) if is_named and isinstance(source, Passage) else source


def _is_document(tool: str, params: Mapping[str, Any]) -> bool:
    """Return whether a call reads an address or a file: all of its output is free text."""
    return not {*words_of(tool)} & WORDS["lists"] and bool(_documents(params))


def _documents(params: Mapping[str, Any]) -> list[str]:
    texts = [leaf.value for leaf in leaves(params) if isinstance(leaf.value, str) and len(leaf.value) < 2_000]
    return [text for text in texts if is_address(text) or "/" in text or _FILE.fullmatch(text)]


def _of_output(tool: str, text: str, *, is_document: bool) -> Iterator[OutputField | Passage]:
    if is_document:
        yield Passage(tool, plain_text(text))
        return
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        yield from _of_lines(tool, text)
        return
    yield from _of_value(tool, value)


def _of_value(tool: str, value: Any) -> Iterator[OutputField | Passage]:
    for key in _keys(value):
        yield from _of_leaf(tool, key, "")
    for leaf in leaves(value):
        text = leaf.value if isinstance(leaf.value, str) else json.dumps(leaf.value)
        yield from _of_leaf(tool, text, leaf.keys[-1] if leaf.keys else "")


def _keys(value: Any, depth: int = 0) -> Iterator[str]:
    if depth > _MAX_KEY_DEPTH or not isinstance(value, Mapping | list):
        return
    for part in value:
        if isinstance(value, Mapping):
            yield str(part)
        yield from _keys(value[part] if isinstance(value, Mapping) else part, depth + 1)


def _of_leaf(tool: str, text: str, key: str) -> Iterator[OutputField | Passage]:
    line, is_field = plain_text(text), _is_field(text)
    is_free_text = any(word.removesuffix("s") in WORDS["free_text_keys"] for word in words_of(key))
    if is_field and line:
        yield OutputField(tool, line.lower(), is_free_text)
    if not is_field or (line and (is_free_text or len(line.split()) > 2)):
        yield Passage(tool, line)


def _is_field(text: str) -> bool:
    return "\n" not in text.strip() and len(text) <= _FIELD_CHARS and len(text.split()) <= _FIELD_WORDS


def _of_lines(tool: str, text: str) -> Iterator[OutputField | Passage]:
    yield Passage(tool, plain_text(text))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if {*words_of(tool)} & WORDS["lists"] and all(_is_field(line) and not _is_sentence(line) for line in lines):
        for line in lines:
            bare = _BULLET.sub("", line)
            for value in {line, bare, _LABEL.sub("", bare)}:
                yield OutputField(tool, fold_text(value))


def _is_sentence(line: str) -> bool:
    return len(line.split()) > 3 and _SENTENCE_END.search(f"{line} ") is not None
