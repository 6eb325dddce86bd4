"""The texts that the values of a call may come from: the user's words, fields of outputs, and free text."""

import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from typing import Any
from urllib.parse import unquote_plus

from packetgate.state.origins import FlowLabel, SessionLabel
from packetgate.state.printing import escaped
from packetgate.state.routing import Risk, ToolCall
from packetgate.tools.provenance.values import (
    DATE_CHARS,
    NUMBER_WORDS,
    Leaf,
    NormalizedValue,
    find_words,
    fold_text,
    is_address,
    leaves,
    normalized_values_in,
    plain_text,
)
from packetgate.tools.provenance.words import WORDS
from packetgate.tools.spec.hosts import host_in
from packetgate.tools.text.words import stem_of, words_of

_MAX_FIELD_WORDS = 8
"""Maximum number of words in a field; a longer text is free text."""
_MAX_FIELD_CHARS = 200
_MAX_SENTENCE_CHARS = 300
_NEAR_CHARS = 400
"""Distance from a value, in characters, within which instructions are searched."""
_MAX_PLACES = 200
_LABEL = re.compile(r"^[\w ()/-]{1,40}: +(?=\S)")
_BULLET = re.compile(r"^(?:[-*\u2022]|\d{1,4}[.)]|\[[\w ]{1,12}\])\s+")
_SENTENCE_END = re.compile(r"[.!?]\s")
_FILE = re.compile(r"[\w -]{1,200}\.\w{1,5}")
_MAX_KEY_DEPTH = 32
_ADDRESS_SEPARATORS = re.compile(r"[\s<>\"'`()\[\]{},;|\u2018-\u201f]+")
_DOMAIN = re.compile(r"\.[a-z][a-z0-9-]+$")
_TOKEN = re.compile(r"[^\W_]+")
_GAP = re.compile(r"[ -~]{0,3}")
"""Characters between two words that carry little."""
_LINK_WORDS = "a an and at by for from in is of on or the to with".split()


@dataclass(frozen=True)
class OutputField:
    """A complete field of a structured output."""

    tool: str
    text: str
    """The value, folded by `fold_text`."""
    is_free_text: bool = False
    """Whether the field's author chooses its words, such as a subject."""


@dataclass(frozen=True)
class FreeText:
    """Free text of an output, an attachment or an earlier message, on one line."""

    tool: str
    text: str
    is_named: bool = False
    """Whether the text is a document whose address or path is in the user's words."""

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
        """The ends of all sentences except the last."""
        return [match.end() for match in _SENTENCE_END.finditer(self.text)]


@dataclass(frozen=True)
class TextPlace:
    """A part of a free text."""

    source: FreeText
    start: int
    end: int

    def sentences(self, before: int) -> str:
        """Return the sentence of this part and `before` sentences before it, folded, cut to the text nearby."""
        first, last = self._bounds(before)
        return self.source.folded[max(first, self.start - _NEAR_CHARS) : min(last, self.end + _NEAR_CHARS)]

    def quoted(self) -> tuple[str, str]:
        """Return the sentence, cut if it is long, and the part; names replace control characters."""
        text = self.source.text
        start, end = self._bounds(0)
        first = max(start, self.start - _MAX_SENTENCE_CHARS // 2)
        last = max(min(end, first + _MAX_SENTENCE_CHARS), min(self.end, self.start + _MAX_SENTENCE_CHARS))
        sentence = f"{'…' if first > start else ''}{text[first:last].strip()}{'…' if last < end else ''}"
        return escaped(sentence), escaped(text[self.start : min(self.end, last)])

    def _bounds(self, before: int) -> tuple[int, int]:
        ends = self.source.sentence_ends
        at = bisect_right(ends, self.start)
        first = ends[at - 1 - before] if at > before else 0
        return first, next((end for end in ends[at:] if end >= self.end), len(self.source.text))


@dataclass(frozen=True)
class FlagReason:
    """The reason why an argument is flagged, with its place in free text or, without a place, the text to mark."""

    why: str
    place: TextPlace | None = None
    flagged_part: str = ""


@dataclass(frozen=True)
class UserWords:
    """The user's own words."""

    text: str

    @cached_property
    def folded(self) -> str:
        """The words as they are compared."""
        return fold_text(self.text)

    @cached_property
    def normalized_values(self) -> frozenset[NormalizedValue]:
        """The numbers, dates and accounts in the user's words. Number words count, except `one`."""
        spelt = (NUMBER_WORDS[word] for word in self.folded.split() if NUMBER_WORDS.get(word, 1) > 1)
        return frozenset([*normalized_values_in(self.folded), *(("number", Decimal(number)) for number in spelt)])

    def contain(self, text: str) -> bool:
        """Return whether the user's words contain all words of a folded text in a row."""
        return find_words(self.folded, text) >= 0

    def state(self, text: str) -> bool:
        """Return whether the user wrote exactly this text, as separate words."""
        return find_words(self.text, text) >= 0

    @cached_property
    def _hosts(self) -> frozenset[str]:
        addresses = (part.strip(".:!?*_~-") for part in _ADDRESS_SEPARATORS.split(self.text))
        found = (
            host_in(address)
            for address in addresses
            if "://" in address or is_address(address) or ("." in address and not address.isascii())
        )
        return frozenset(host.removeprefix("www.") for host in found if host)

    def domain_of(self, host: str) -> str:
        """Return the host that the user named if `host` is this host or below it; otherwise ""."""
        ends = (host[match.end() :] for match in re.finditer(r"^|\.", host)) if host else ()
        return next((end for end in ends if end in self._hosts and (end == host or _DOMAIN.search(end))), "")

    @cached_property
    def _tokens(self) -> frozenset[str]:
        return frozenset(_TOKEN.findall(self.text))

    @cached_property
    def _forms(self) -> Counter[str]:
        return Counter(map(_word_form, _TOKEN.findall(self.text)))

    def cover(self, text: str) -> bool:
        """Return whether a text has only words of the user, each as often as the user wrote it, and no hidden text.

        A word counts in other forms, such as the plural, and each of `_LINK_WORDS` may be added once.
        """
        plain = unquote_plus(text)
        tokens = _TOKEN.findall(plain)
        if not (tokens and all(map(_GAP.fullmatch, _TOKEN.split(plain)))):
            return not plain.strip(" /")
        left = self._forms + Counter(_LINK_WORDS)
        left.subtract(map(_word_form, tokens))
        return min(left.values()) >= 0 and all(token in self._tokens or _has_usual_case(token) for token in tokens)


@dataclass(frozen=True)
class SourceTexts:
    """The texts from which the values of a turn's calls may come, newest first."""

    user: UserWords
    request: str = ""
    """The user's words that may ask for the next call, folded."""
    fields: tuple[OutputField, ...] = ()
    free_texts: tuple[FreeText, ...] = ()
    picture: str = ""
    """Name of a picture that the user attached; a model may read values in it."""
    labels: Mapping[FlowLabel, str] = field(default_factory=dict)
    """What the session holds, with the tool, attachment or message that it came from."""
    listed: frozenset[tuple[str, str]] = frozenset()
    """Addresses that are whole fields of listings, exactly as written, each with the server that may read it; an empty
    server means any.
    """
    client_words: bool = False
    """Whether a client that had read outputs wrote `user`: such words name no destination of a read."""
    earlier: tuple[ToolCall, ...] = ()
    """The earlier calls of the session, oldest first."""

    @property
    def destinations(self) -> UserWords:
        """The words that name destinations of reads."""
        return UserWords("") if self.client_words else self.user

    def is_listed(self, address: str, server: str) -> bool:
        """Return whether a listing that counts for the server holds exactly this address."""
        return not self.listed.isdisjoint({(address, ""), (address, server)})

    def places_of(self, text: str) -> Iterator[TextPlace]:
        """Yield the places of a folded text in free text, at most `_MAX_PLACES`."""
        remaining = _MAX_PLACES
        for source in self.free_texts:
            at = find_words(source.folded, text)
            while at >= 0 and remaining:
                yield TextPlace(source, at, at + len(text))
                remaining -= 1
                at = find_words(source.folded, text, at + 1)

    def is_server_field(self, text: str, server: str) -> bool:
        """Return whether this server returned a folded text as a field that is not free text."""
        prefix = f"{server}."
        return any(
            field.text == text and field.tool.startswith(prefix) and not field.is_free_text for field in self.fields
        )

    @cached_property
    def named_texts(self) -> frozenset[str]:
        """The free texts of records, such as mails, whose address and title are both in the user's words."""
        return frozenset(
            plain_text(value)
            for call in self.earlier
            if call.result is not None
            for record in _records_in(call.result.structured or _parsed_json(call.result.server_text))
            if self._is_named(record)
            for value in record.values()
            if isinstance(value, str) and not _is_field(value)
        )

    def _is_named(self, record: Mapping[str, Any]) -> bool:
        texts = [fold_text(value) for value in record.values() if isinstance(value, str) and _is_field(value)]
        stated = [text for text in texts if text and self.user.contain(text)]
        return any(map(is_address, stated)) and any(" " in text for text in stated)

    @cached_property
    def fields_by_text(self) -> dict[str, OutputField]:
        """The newest field of each text; a field that is not free text is preferred."""
        fields: dict[str, OutputField] = {}
        for newer in self.fields:
            known = fields.get(newer.text)
            if known is None or (known.is_free_text and not newer.is_free_text):
                fields[newer.text] = newer
        return fields

    @cached_property
    def fields_by_normalized_value(self) -> dict[NormalizedValue, OutputField]:
        """The newest field of each number or account, or of each date at its start."""
        return {
            value: field
            for field in reversed(self.fields)
            for value, (start, end) in normalized_values_in(field.text).items()
            if start == 0 and not (value[0] == "account" and field.is_free_text)
            if (len(field.text) < DATE_CHARS if value[0] == "day" else end == len(field.text))
        }


def _word_form(word: str) -> str:
    lower = word.lower()
    return stem_of(lower) if len(lower) > 3 and lower.isalpha() else lower


def _has_usual_case(word: str) -> bool:
    return word.isalpha() and word in (word.lower(), word.upper(), word.capitalize())


def source_texts(
    *,
    user_words: str,
    request: str,
    earlier: Sequence[ToolCall] = (),
    other_texts: Iterable[tuple[str, str]] = (),
    labels: Iterable[SessionLabel] = (),
    picture: str = "",
) -> SourceTexts:
    """Return the sources of values.

    Args:
        user_words: everything that the user wrote in the session.
        request: what the user wrote for this request.
        earlier: calls with a result, oldest first.
        other_texts: attachments, earlier answers and messages that a client supplied: (source, text), newest first.
        labels: what the session holds.
        picture: the name of an attached picture.
    """
    user = UserWords(user_words)
    sources = [source for call in reversed(earlier) for source in _sources_in_call(call, user)]
    sources += [FreeText(source, plain_text(text)) for source, text in other_texts]
    return SourceTexts(
        user=user,
        request=fold_text(request),
        fields=tuple(source for source in sources if isinstance(source, OutputField)),
        free_texts=tuple(source for source in sources if isinstance(source, FreeText)),
        labels={label.label: label.source for label in labels},
        listed=frozenset(
            (address, "" if call.open_world else call.tool_name.partition(".")[0])
            for call in earlier
            for address in _listed_addresses(call)
        ),
        picture=picture,
        earlier=tuple(earlier),
    )


def is_listing(tool: str) -> bool:
    """Return whether a tool with this name lists or searches."""
    return not WORDS["lists"].isdisjoint(words_of(tool))


def _listed_addresses(call: ToolCall) -> Iterator[str]:
    """Yield the addresses in the fields of a listing or search, as written: later reads may go to them.

    Of a tool that is known to search only public text, lines such as `URL: https://example.org` count as fields.
    """
    if call.result is None or not call.result.success or not is_listing(call.tool_name):
        return
    parsed = _parsed_json(call.result.server_text)
    for leaf in (leaf for value in (call.result.structured, parsed) for leaf in leaves(value)):
        text = leaf.value
        is_one = isinstance(text, str) and (is_address(text) or ("://" in text and bool(host_in(text))))
        if is_one and not _is_free_text_key(leaf):
            yield text
    if parsed is None and call.open_world and FlowLabel.PRIVATE not in call.result_labels:
        lines = (_LABEL.sub("", _BULLET.sub("", line.strip())) for line in call.result.server_text.splitlines())
        yield from (line for line in lines if "://" in line and host_in(line))


def _sources_in_call(call: ToolCall, user: UserWords) -> Iterator[OutputField | FreeText]:
    result = call.result
    if result is None:
        return
    is_document = call.apparent_risk is Risk.READ and _reads_document(call.tool_name, call.params)
    if result.structured is not None and result.success:
        yield from _sources_in_value(call.tool_name, result.structured)
    outputs = _sources_in_output(call.tool_name, result.server_text, is_document=is_document)
    yield from _named(outputs, call.params, user) if is_document else outputs


def _named(
    sources: Iterator[OutputField | FreeText], params: Mapping[str, Any], user: UserWords
) -> Iterator[OutputField | FreeText]:
    """Yield the sources of a document, marked if the user's words name it."""
    is_named = any(user.contain(fold_text(text)) for text in _document_names(params))
    for source in sources:
        yield replace(source, is_named=True) if is_named and isinstance(source, FreeText) else source


def _reads_document(tool: str, params: Mapping[str, Any]) -> bool:
    """Return whether a call reads an address or a file, so that all of its output is free text."""
    return not is_listing(tool) and bool(_document_names(params))


def _document_names(params: Mapping[str, Any]) -> list[str]:
    texts = [leaf.value for leaf in leaves(params) if isinstance(leaf.value, str) and len(leaf.value) < 2_000]
    return [text for text in texts if is_address(text) or "/" in text or _FILE.fullmatch(text)]


def _sources_in_output(tool: str, text: str, *, is_document: bool) -> Iterator[OutputField | FreeText]:
    if is_document:
        yield FreeText(tool, plain_text(text))
        return
    value = _parsed_json(text)
    yield from _sources_in_lines(tool, text) if value is None else _sources_in_value(tool, value)


def _parsed_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _is_free_text_key(leaf: Leaf) -> bool:
    return any(
        word.removesuffix("s") in WORDS["free_text_keys"] for word in words_of(leaf.keys[-1] if leaf.keys else "")
    )


def _sources_in_value(tool: str, value: Any) -> Iterator[OutputField | FreeText]:
    for key in keys_in(value):
        yield from _sources_in_leaf(tool, Leaf((), key))
    for leaf in leaves(value):
        yield from _sources_in_leaf(tool, leaf)


def _records_in(value: Any, depth: int = 0) -> Iterator[Mapping[str, Any]]:
    if depth <= _MAX_KEY_DEPTH and isinstance(value, Mapping | list):
        if isinstance(value, Mapping):
            yield value
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _records_in(part, depth + 1)


def keys_in(value: Any, depth: int = 0) -> Iterator[str]:
    """Yield the keys of all objects in a value."""
    if depth > _MAX_KEY_DEPTH or not isinstance(value, Mapping | list):
        return
    for part in value:
        if isinstance(value, Mapping):
            yield str(part)
        yield from keys_in(value[part] if isinstance(value, Mapping) else part, depth + 1)


def _sources_in_leaf(tool: str, leaf: Leaf) -> Iterator[OutputField | FreeText]:
    text = leaf.value if isinstance(leaf.value, str) else json.dumps(leaf.value)
    line, is_field, is_free_text = plain_text(text), _is_field(text), _is_free_text_key(leaf)
    if is_field and line:
        yield OutputField(tool, line.lower(), is_free_text)
    if not is_field or (line and (is_free_text or len(line.split()) > 2)):
        yield FreeText(tool, line)


def _is_field(text: str) -> bool:
    return "\n" not in text.strip() and len(text) <= _MAX_FIELD_CHARS and len(text.split()) <= _MAX_FIELD_WORDS


def _sources_in_lines(tool: str, text: str) -> Iterator[OutputField | FreeText]:
    yield FreeText(tool, plain_text(text))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if is_listing(tool) and all(_is_field(line) and not _is_sentence(line) for line in lines):
        for line in lines:
            bare = _BULLET.sub("", line)
            for value in {line, bare, _LABEL.sub("", bare)}:
                yield OutputField(tool, fold_text(value))


def _is_sentence(line: str) -> bool:
    return len(line.split()) > 3 and _SENTENCE_END.search(f"{line} ") is not None
