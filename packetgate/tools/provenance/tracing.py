"""Trace each value of a call to the texts that contain it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from packetgate.state.origins import ArgumentRole, OriginKind
from packetgate.tools.provenance.exfiltration import phrases_in
from packetgate.tools.provenance.roles import role_of
from packetgate.tools.provenance.sources import OutputField, SourceTexts, TextPlace
from packetgate.tools.provenance.values import (
    Form,
    Leaf,
    addresses_in,
    find_words,
    fold_text,
    forms_of,
    host_of,
    is_account,
    is_address,
    plain_text,
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


def _trace(text: str, role: ArgumentRole, sources: SourceTexts) -> Trace:
    folded = fold_text(text)
    has_address = is_address(plain_text(text)) or is_account(folded)
    spellings = [folded, folded.strip(" .,;:!?\"'()<>[]")]
    if has_address:
        bare = folded.removeprefix("mailto:")
        bare = bare.partition("://")[2] or bare
        spellings += [bare, bare.rstrip("/"), bare.rstrip("/").removeprefix("www.")]
    spellings = [spelling for spelling in dict.fromkeys(spellings) if spelling]
    place = next((place for spelling in spellings if (place := _place(spelling, sources))), None)
    trace = Trace(OriginKind.NOBODY, role, folded, place=place, is_address=has_address)
    if _is_from_user(folded, spellings, role, sources):
        return replace(trace, kind=OriginKind.USER)
    field = _field(folded, spellings, sources, has_address=has_address)
    if field is not None:
        return replace(trace, kind=OriginKind.STRUCTURED, tool=field.tool, worded=field.worded)
    if place is not None:
        return replace(trace, kind=OriginKind.TEXT, tool=place.passage.tool)
    return trace


def _is_from_user(text: str, spellings: Sequence[str], role: ArgumentRole, sources: SourceTexts) -> bool:
    user, forms = sources.user, forms_of(text)
    if any(map(user.contain, spellings)) or (forms and all(not user.forms.isdisjoint(any_of) for any_of in forms)):
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


def _field(text: str, spellings: Sequence[str], sources: SourceTexts, *, has_address: bool) -> OutputField | None:
    for spelling in spellings:
        field = sources.fields_by_text.get(spelling)
        if field is not None and not (has_address and field.worded):
            return field
    return next((field for form in _first_forms(text) if (field := sources.fields_by_form.get(form))), None)


def _place(text: str, sources: SourceTexts) -> TextPlace | None:
    """Return the first place where free text contains a value in any form."""
    first = next(sources.places_of(text), None)
    forms = _first_forms(text) if first is None else ()
    places = (TextPlace(one, *one.forms[form]) for one in sources.passages for form in forms if form in one.forms)
    return first or next(places, None)


def _first_forms(text: str) -> tuple[Form, ...]:
    return next(iter(forms_of(text)), ())


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
