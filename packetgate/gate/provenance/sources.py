"""The evidence about a call's values: the user's words, fields of outputs, and free text."""

import json
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from itertools import product
from typing import Any
from urllib.parse import quote, quote_plus, unquote_plus

from packetgate.state.origins import FlowLabel
from packetgate.state.printing import escaped
from packetgate.state.routing import Risk, ToolCall, ToolResult
from packetgate.tools.spec.hosts import host_in
from packetgate.tools.text.argument_words import WORDS
from packetgate.tools.text.values import (
    NUMBER_WORDS,
    Leaf,
    NormalizedValue,
    find_words,
    fold_text,
    is_address,
    keys_in,
    leaves,
    normalized_values_in,
    normalized_values_of,
    plain_text,
)
from packetgate.tools.text.words import stem_of, words_of

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
_ADDRESS_SEPARATORS = re.compile(r"[\s<>\"'`()\[\]{},;|\u2018-\u201f]+")
_DOMAIN = re.compile(r"\.[a-z][a-z0-9-]+$")
_TOKEN = re.compile(r"[^\W_]+")
_GAPS = frozenset(" +-_/.,&")
"""Signs that may stand between two words instead of those that the user wrote."""
_ENDS = frozenset(["", "/", ".", "?"])
_LINK_WORDS = "a an and at by for from in is of on or the to with".split()


@dataclass(frozen=True)
class OutputField:
    """A complete field of a structured output."""

    tool: str
    written: str
    """The value as written."""
    is_free_text: bool = False
    """Whether the field's author chooses its words, such as a subject."""
    listed_for: str | None = None
    """If a listing returned the field: the server whose reads may go to an address in it; an empty server means any."""

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
        """Return whether the user's words contain a folded text, or name all its numbers, dates and accounts."""
        values = normalized_values_of(text)
        is_named = bool(values) and all(not self.normalized_values.isdisjoint(options) for options in values)
        return is_named or self.contain(text)

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
    def _tokens_by_form(self) -> dict[str, list[str]]:
        tokens: dict[str, list[str]] = {word: [word] for word in _LINK_WORDS}
        for token in _TOKEN.findall(self.text):
            tokens.setdefault(_word_form(token), []).append(token)
        return tokens

    def cover(self, text: str) -> bool:
        """Return whether a text has only words of the user, each as often as the user wrote it, in canonical form.

        A word counts in other forms, such as the plural, and each of `_LINK_WORDS` may be added once. Capitals, signs
        between the words, and percent signs could carry data: they are as the user wrote them, or all alike.
        """
        plain = unquote_plus(text)
        tokens, (first, *gaps) = _TOKEN.findall(plain), _TOKEN.split(plain)
        if not tokens:
            return not plain.strip(" /")
        forms = [(token, _word_form(token)) for token in tokens]
        used = Counter(form for _, form in forms)
        own = {form: self._tokens_by_form.get(form, []) for form in used}
        pairs = zip(tokens, gaps, tokens[1:], strict=False)
        new_gaps = {gap for one, gap, next_one in pairs if one + gap + next_one not in self.text}
        return (
            text in {plain, quote(plain), quote(plain, safe=""), quote_plus(plain)}
            and all(count <= len(own[form]) for form, count in used.items())
            and (
                plain.islower() or all(one in own[form] or " ".join([one, *own[form]]).islower() for one, form in forms)
            )
            and len(new_gaps) <= 1
            and all(len(gap) == 1 and gap in _GAPS for gap in new_gaps)
            and (first in {"", "/"} and gaps[-1] in _ENDS)
        )


@dataclass(frozen=True)
class SourceTexts:
    """The evidence of a session about the values of its next calls, newest first."""

    user: UserWords
    request: str = ""
    """The user's words that may ask for the next call, folded."""
    fields: tuple[OutputField, ...] = ()
    free_texts: tuple[FreeText, ...] = ()
    labels: Mapping[FlowLabel, str] = field(default_factory=dict)
    """What the session holds, with the tool, attachment or message that it came from."""
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


def _word_form(word: str) -> str:
    lower = word.lower()
    return stem_of(lower) if len(lower) > 3 and lower.isalpha() else lower


def is_listing(tool: str) -> bool:
    """Return whether a tool with this name lists or searches."""
    return not WORDS["lists"].isdisjoint(words_of(tool))


def sources_in_call(call: ToolCall, user: UserWords) -> Iterator[OutputField | FreeText]:
    """Yield the fields and texts of a result, without addresses that the server may only repeat from the arguments."""
    arguments = [str(text) for text in [*keys_in(call.params), *(leaf.value for leaf in leaves(call.params))]]
    given = fold_text("\n".join(arguments))
    for source in _all_sources_in(call, user) if call.result else ():
        is_field = isinstance(source, OutputField)
        if not (is_field and ("://" in source.text or is_address(source.text)) and source.text in given):
            yield source


def _all_sources_in(call: ToolCall, user: UserWords) -> Iterator[OutputField | FreeText]:
    """Yield the fields and texts of a result. The output of a call that reads an address or a file is one free text.

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
