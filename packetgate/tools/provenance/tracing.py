"""Where each value of a call comes from: whose words it stands in, whole or in part."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from packetgate.state.origins import ArgumentRole, OriginKind
from packetgate.tools.provenance.evidence import Evidence, Field, Passage
from packetgate.tools.provenance.leaving import shingles
from packetgate.tools.provenance.roles import role_of
from packetgate.tools.provenance.values import (
    Leaf,
    addresses_in,
    days_in,
    find,
    folded,
    host_of,
    is_account,
    is_address,
    number,
    plain,
    same_day,
    squeezed,
)

_WORST = (OriginKind.USER, OriginKind.DEFAULT, OriginKind.STRUCTURED, OriginKind.NOBODY, OriginKind.TEXT)
"""Of several parts of an argument, the last of these tells where it comes from."""
_SEPARATOR = re.compile(r"\s*[,;\n]\s*")
_ABSENT = object()
MAX_PLACES = 200
MAX_PARTS = 200
"""Addresses in one argument that are traced; with more, nobody can have named them all."""
HOST_CHARS = 253


@dataclass(frozen=True)
class Place:
    """Where in free text something stands."""

    passage: Passage
    start: int
    end: int


@dataclass(frozen=True)
class Trace:
    """Where one part of an argument comes from."""

    kind: OriginKind
    role: ArgumentRole
    said: str
    """The part, folded."""
    tool: str = ""
    place: Place | None = None
    """Where it stands in free text, also where a field has it too."""
    is_address: bool = False
    worded: bool = False
    """Whether the field that has it is one that somebody words as they like."""

    @property
    def badness(self) -> int:
        """How far it is from the user."""
        return _WORST.index(self.kind)


def traces_of(leaf: Leaf, schema: Mapping[str, Any], evidence: Evidence) -> list[Trace]:
    """Return where the parts of a value come from; the schema is that of the argument that it stands in."""
    role, value = role_of(leaf.keys, schema, leaf.value), leaf.value
    if any(value == schema.get(key, _ABSENT) for key in ("default", "const")) or (
        isinstance(value, str) and not value.strip()
    ):
        return [Trace(OriginKind.DEFAULT, role, str(value))]
    if isinstance(value, bool):
        return [Trace(OriginKind.NOBODY, role, str(value).lower())]
    text = str(value)
    whole = _traced(text, role, evidence)
    if role is ArgumentRole.DESTINATION and not whole.kind.is_given:
        parts = addresses_in(plain(text)) or [one for one in _SEPARATOR.split(text) if one.strip()]
        if len(parts) > MAX_PARTS:
            return [replace(whole, kind=OriginKind.NOBODY, is_address=True)]
        return [_traced(part, role, evidence) for part in parts] if parts and parts != [text] else [whole]
    if isinstance(value, str) and role is not ArgumentRole.DESTINATION and not whole.kind.is_given:
        links = [_traced(one, role, evidence) for one in addresses_in(plain(text))[:MAX_PARTS]]
        return [_of_phrases(whole, evidence), *(one for one in links if one.kind is not OriginKind.NOBODY)]
    return [whole]


def _traced(text: str, role: ArgumentRole, evidence: Evidence) -> Trace:
    said = folded(text)
    address = is_address(plain(text)) or is_account(said)
    forms = _forms(said, address)
    place = next((found for form in forms if (found := _place(form, evidence))), None)
    trace = Trace(OriginKind.NOBODY, role, said, place=place, is_address=address)
    if _said_by_user(said, forms, role, evidence):
        return replace(trace, kind=OriginKind.USER)
    known = _field(said, forms, evidence, address=address)
    if known is not None:
        return replace(trace, kind=OriginKind.STRUCTURED, tool=known.tool, worded=known.worded)
    if place is not None:
        return replace(trace, kind=OriginKind.TEXT, tool=place.passage.tool)
    return trace


def places_of(said: str, evidence: Evidence) -> Iterator[Place]:
    """Yield where a folded text stands in free text, each time; at most `MAX_PLACES`."""
    left = MAX_PLACES
    for passage in evidence.passages:
        at = find(passage.folded, said)
        while at >= 0 and left:
            yield Place(passage, at, at + len(said))
            left -= 1
            at = find(passage.folded, said, at + 1)


def _forms(said: str, address: bool) -> list[str]:
    """Return the ways in which the same is written."""
    forms = [said, said.strip(" .,;:!?\"'()<>[]")]
    if address:
        bare = said.removeprefix("mailto:").partition("://")[2] or said.removeprefix("mailto:")
        forms += [bare, bare.rstrip("/"), bare.rstrip("/").removeprefix("www.")]
    return [one for one in dict.fromkeys(forms) if one]


def _said_by_user(said: str, forms: Sequence[str], role: ArgumentRole, evidence: Evidence) -> bool:
    user = evidence.user
    if any(user.say(form) for form in forms):
        return True
    if is_account(said) and squeezed(said) in user.accounts:
        return True
    value, days = number(said), [day for day, _, _ in days_in(said)]
    if value is not None and value in user.numbers:
        return True
    if days and all(any(same_day(day, one) for one in user.days) for day in days) and len(said) < 40:
        return True
    if role is not ArgumentRole.DESTINATION or "@" in said:
        return False
    host, name = host_of(said), said.rstrip("/\\").replace("\\", "/").rpartition("/")[2]
    if is_address(said):
        return bool(host) and _names_host(host, user.folded)
    return len(name) > 3 and name != said and user.say(name)


def _names_host(host: str, words: str) -> bool:
    """Whether a host, or the domain that it is of, stands in the user's words."""
    if len(host) > HOST_CHARS:
        return False
    labels = host.removeprefix("www.").split(".")
    return any(find(words, ".".join(labels[at:])) >= 0 for at in range(max(1, len(labels) - 1)))


def _field(said: str, forms: Sequence[str], evidence: Evidence, *, address: bool) -> Field | None:
    fields = evidence.fields_by_text
    for form in forms:
        known = fields.get(form)
        if known is not None and not (address and known.worded):
            return known
    if is_account(said) and squeezed(said) in evidence.field_accounts:
        return evidence.field_accounts[squeezed(said)]
    value = number(said)
    if value is not None:
        return evidence.field_numbers.get(value)
    days = [day for day, _, _ in days_in(said)] if len(said) < 40 else []
    return next((one for known, one in evidence.field_days if days and same_day(known, days[0])), None)


def _place(said: str, evidence: Evidence) -> Place | None:
    for passage in evidence.passages:
        at = find(passage.folded, said)
        if at >= 0:
            return Place(passage, at, at + len(said))
    value: Decimal | None = number(said)
    days = [day for day, _, _ in days_in(said)] if len(said) < 40 else []
    if value is None and not days and not is_account(said):
        return None
    for passage in evidence.passages:
        found: tuple[int, int] | None = None
        if value is not None:
            found = passage.numbers.get(value)
        elif days:
            found = next(((start, end) for day, start, end in passage.days if same_day(day, days[0])), None)
        else:
            found = passage.accounts.get(squeezed(said))
        if found is not None:
            return Place(passage, *found)
    return None


def _of_phrases(whole: Trace, evidence: Evidence) -> Trace:
    """Return where the phrases of a longer text come from, where the whole is nobody's."""
    if whole.kind is not OriginKind.NOBODY:
        return whole
    phrases = [one for one in shingles(whole.said) if not evidence.user.say(one)]
    for place in _places(phrases, evidence):
        return replace(whole, kind=OriginKind.TEXT, tool=place.passage.tool, place=place)
    return whole


def _places(phrases: Sequence[str], evidence: Evidence) -> Iterator[Place]:
    for passage in evidence.passages:
        for phrase in phrases:
            at = find(passage.folded, phrase)
            if at >= 0:
                yield Place(passage, at, at + len(phrase))
