"""Trace each value of a call to the texts that contain it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from packetgate.state.origins import ArgumentRole, OriginKind
from packetgate.tools.provenance.exfiltration import phrases_in
from packetgate.tools.provenance.roles import role_of
from packetgate.tools.provenance.sources import DATE_CHARS, OutputField, SourceTexts, TextPlace
from packetgate.tools.provenance.values import (
    Day,
    Leaf,
    addresses_in,
    days_in,
    find_words,
    fold_text,
    host_of,
    is_account,
    is_address,
    parse_number,
    plain_text,
    same_day,
    squeeze_text,
)

_WORST_LAST = (OriginKind.USER, OriginKind.DEFAULT, OriginKind.STRUCTURED, OriginKind.NOBODY, OriginKind.TEXT)
_SEPARATOR = re.compile(r"\s*[,;\n]\s*")
_ABSENT = object()
_MAX_PARTS = 200
"""Most addresses of one argument that are traced."""
_HOST_CHARS = 253


@dataclass(frozen=True)
class Trace:
    """The source of one part of an argument."""

    kind: OriginKind
    role: ArgumentRole
    text: str
    """The part, folded."""
    tool: str = ""
    place: TextPlace | None = None
    """The place of the part in free text, even if a field contains the part too."""
    is_address: bool = False
    worded: bool = False
    """Whether the field that contains it is free text."""

    @property
    def badness(self) -> int:
        """A rank of distrust; higher is less trustworthy."""
        return _WORST_LAST.index(self.kind)


def traces_of(leaf: Leaf, schema: Mapping[str, Any], sources: SourceTexts) -> list[Trace]:
    """Return the sources of the parts of a value in an argument with this schema."""
    role, value = role_of(leaf.keys, schema, leaf.value), leaf.value
    is_empty = isinstance(value, str) and not value.strip()
    if is_empty or any(value == schema.get(key, _ABSENT) for key in ("default", "const")):
        return [Trace(OriginKind.DEFAULT, role, str(value))]
    if isinstance(value, bool):
        return [Trace(OriginKind.NOBODY, role, str(value).lower())]
    text = str(value)
    trace = _trace(text, role, sources)
    if trace.kind.is_given:
        return [trace]
    addresses = addresses_in(plain_text(text))
    if role is ArgumentRole.DESTINATION:
        parts = addresses or [part for part in _SEPARATOR.split(text) if part.strip()]
        if len(parts) > _MAX_PARTS:
            return [replace(trace, kind=OriginKind.NOBODY, is_address=True)]
        return [_trace(part, role, sources) for part in parts] if parts and parts != [text] else [trace]
    if isinstance(value, str):
        links = [_trace(address, role, sources) for address in addresses[:_MAX_PARTS]]
        return [_with_phrases(trace, sources), *(link for link in links if link.kind is not OriginKind.NOBODY)]
    return [trace]


@dataclass(frozen=True)
class _Value:
    """A text in the forms in which it is compared."""

    text: str
    is_address: bool
    forms: tuple[str, ...]

    @property
    def account(self) -> str:
        return squeeze_text(self.text) if is_account(self.text) else ""

    @property
    def days(self) -> list[Day]:
        return [day for day, _, _ in days_in(self.text)] if len(self.text) < DATE_CHARS else []


def _value_of(text: str) -> _Value:
    said = fold_text(text)
    forms = [said, said.strip(" .,;:!?\"'()<>[]")]
    address = is_address(plain_text(text)) or is_account(said)
    if address:
        bare = said.removeprefix("mailto:")
        bare = bare.partition("://")[2] or bare
        forms += [bare, bare.rstrip("/"), bare.rstrip("/").removeprefix("www.")]
    return _Value(said, address, tuple(form for form in dict.fromkeys(forms) if form))


def _trace(text: str, role: ArgumentRole, sources: SourceTexts) -> Trace:
    value = _value_of(text)
    place = next((place for form in value.forms if (place := _place(form, sources))), None)
    trace = Trace(OriginKind.NOBODY, role, value.text, place=place, is_address=value.is_address)
    if _is_from_user(value, role, sources):
        return replace(trace, kind=OriginKind.USER)
    field = _field(value, sources)
    if field is not None:
        return replace(trace, kind=OriginKind.STRUCTURED, tool=field.tool, worded=field.worded)
    if place is not None:
        return replace(trace, kind=OriginKind.TEXT, tool=place.passage.tool)
    return trace


def _is_from_user(value: _Value, role: ArgumentRole, sources: SourceTexts) -> bool:
    user, text, days = sources.user, value.text, value.days
    if (
        any(user.contain(form) for form in value.forms)
        or value.account in user.accounts
        or parse_number(text) in user.numbers
    ):
        return True
    if days and all(any(same_day(day, other) for other in user.days) for day in days):
        return True
    if role is not ArgumentRole.DESTINATION or "@" in text:
        return False
    if is_address(text):
        return _names_host(host_of(text), user.folded)
    name = text.rstrip("/\\").replace("\\", "/").rpartition("/")[2]
    return len(name) > 3 and name != text and user.contain(name)


def _names_host(host: str, words: str) -> bool:
    """Return whether words contain a host or its domain."""
    if not host or len(host) > _HOST_CHARS:
        return False
    labels = host.removeprefix("www.").split(".")
    return any(find_words(words, ".".join(labels[at:])) >= 0 for at in range(max(1, len(labels) - 1)))


def _field(value: _Value, sources: SourceTexts) -> OutputField | None:
    for form in value.forms:
        field = sources.fields_by_text.get(form)
        if field is not None and not (value.is_address and field.worded):
            return field
    if value.account in sources.field_accounts:
        return sources.field_accounts[value.account]
    amount = parse_number(value.text)
    if amount is not None:
        return sources.field_numbers.get(amount)
    days = value.days
    return next((field for day, field in sources.field_days if days and same_day(day, days[0])), None)


def _place(text: str, sources: SourceTexts) -> TextPlace | None:
    """Return the first place where free text contains a value in any form."""
    first = next(sources.places_of(text), None)
    if first is not None:
        return first
    value = _Value(text, False, ())
    amount, days = parse_number(text), value.days
    if amount is None and not days and not value.account:
        return None
    for passage in sources.passages:
        if amount is not None:
            span = passage.numbers.get(amount)
        elif days:
            span = next(((start, end) for day, start, end in passage.days if same_day(day, days[0])), None)
        else:
            span = passage.accounts.get(value.account)
        if span is not None:
            return TextPlace(passage, *span)
    return None


def _with_phrases(trace: Trace, sources: SourceTexts) -> Trace:
    """Return the trace of a longer text that contains a phrase of free text."""
    if trace.kind is not OriginKind.NOBODY:
        return trace
    phrases = [phrase for phrase in phrases_in(trace.text) if not sources.user.contain(phrase)]
    place = _first_place(phrases, sources)
    return replace(trace, kind=OriginKind.TEXT, tool=place.passage.tool, place=place) if place else trace


def _first_place(phrases: Sequence[str], sources: SourceTexts) -> TextPlace | None:
    for passage in sources.passages:
        for phrase in phrases:
            at = find_words(passage.folded, phrase)
            if at >= 0:
                return TextPlace(passage, at, at + len(phrase))
    return None
