"""Lexical ranking of tools against a request: BM25 over weighted fields (BM25F), on Porter's stems.

A tool's part of the index depends on nothing but the tool, and how rare a word is, is counted when it is asked for: so
an index takes over what has not changed from an earlier one.
"""

import heapq
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from tools.spec.tool_spec import ToolSpec, parts_of
from tools.text.words import STOP_WORDS, query_terms, stem_of, words_in

SATURATION = 1.2
"""BM25's k1: how soon it stops to matter that a tool says a word once more."""
LENGTH_SHARE = 0.5
"""BM25's b: how far a word counts for less in a longer text, from 0 (not) to 1 (in proportion)."""
NAMED_SHARE = 0.5
"""How much a score grows when the request holds every word of the tool's name; less, if it holds some."""
MAX_MATCHES = 10_000
"""Pairs of word and tool that one request may weigh; its rarest words go first."""


class Field(NamedTuple):
    """What a field counts, and how many words it usually holds."""

    weight: float
    usual_length: int


FIELDS = {
    "name": Field(3.0, 3),
    "server": Field(1.0, 2),
    "brief": Field(1.0, 15),
    "full": Field(1.0, 25),
    "parameters": Field(0.5, 30),
    "examples": Field(1.0, 15),
}
"""The brief description is the first part of the full one: its words count twice."""


class Held(NamedTuple):
    """What a stem says of a tool that holds it."""

    weight: float
    """How much, from 0 to 1."""
    name_share: float
    """Its share of the tool's name."""


_Index = dict[str, dict[str, Held]]
"""By stem and tool."""


@dataclass(frozen=True)
class Ranked:
    """A tool and how well it fits; higher is better, always above 0."""

    name: str
    score: float
    terms: frozenset[str] = frozenset()
    """Words of the request that the tool knows."""
    name_terms: frozenset[str] = frozenset()
    """Those that its name or its server's holds."""


@dataclass(frozen=True)
class _Entry:
    """A tool in the index, by its stems."""

    spec: ToolSpec
    held: dict[str, Held]
    name: frozenset[str]
    server: frozenset[str]


class Ranking:
    """An index over one set of tools; it never changes, and threads may share it."""

    def __init__(self, specs: Iterable[ToolSpec], earlier: "Ranking | None" = None) -> None:
        """Index `specs`; what `earlier` holds already is not read again."""
        before = earlier._entries if earlier else {}
        given = {spec.name: spec for spec in specs}
        kept = {name: one for name, one in before.items() if given.get(name) == one.spec}
        gone = [one for name, one in before.items() if name not in kept]
        new = [_entry(spec) for name, spec in given.items() if name not in kept]
        self._entries: dict[str, _Entry] = kept | {entry.spec.name: entry for entry in new}
        self._index: _Index = _updated(earlier._index if earlier else {}, gone, new)

    def rank(self, request: str, limit: int = 20) -> list[Ranked]:
        """Return the tools that share a word with the request, best first; ties in order of name."""
        words: dict[str, set[str]] = {}
        for word in query_terms(request):
            words.setdefault(stem_of(word), set()).add(word)
        scores = self._scores(words)
        best = heapq.nsmallest(limit, scores, key=lambda name: (-scores[name], name))
        return [self._ranked(name, scores[name], words) for name in best]

    def _scores(self, stems: Iterable[str]) -> dict[str, float]:
        """Return the score of every tool that holds a stem, the rarest stems first for as long as there is room."""
        scores: dict[str, float] = {}
        named: dict[str, float] = {}
        room = MAX_MATCHES
        for stem in sorted(self._index.keys() & stems, key=lambda stem: (len(self._index[stem]), stem)):
            holders = self._index[stem]
            room -= len(holders)
            if room < 0 and scores:
                break
            rarity = math.log1p((len(self._entries) - len(holders) + 0.5) / (len(holders) + 0.5))
            for name, held in holders.items():
                scores[name] = scores.get(name, 0.0) + rarity * held.weight
                if held.name_share:
                    named[name] = named.get(name, 0.0) + held.name_share
        for name, share in named.items():
            scores[name] *= 1 + NAMED_SHARE * share
        return scores

    def _ranked(self, name: str, score: float, words: Mapping[str, set[str]]) -> Ranked:
        entry = self._entries[name]

        def asked(stems: Iterable[str]) -> frozenset[str]:
            return frozenset(chain.from_iterable(words[stem] for stem in words.keys() & stems))

        return Ranked(name, score, terms=asked(entry.held), name_terms=asked(entry.name | entry.server))


def _entry(spec: ToolSpec) -> _Entry:
    words = {field: words_in(text) for field, text in _texts_of(spec).items()}
    stems = {field: [stem_of(word) for word in said if word not in STOP_WORDS] for field, said in words.items()}
    sums: defaultdict[str, float] = defaultdict(float)
    for field, (weight, usual_length) in FIELDS.items():
        length = 1 - LENGTH_SHARE + LENGTH_SHARE * len(words[field]) / usual_length
        for stem in stems[field]:
            sums[stem] += weight / length
    name = frozenset(stems["name"])
    held = {
        stem: Held(much / (much + SATURATION), 1 / len(name) if stem in name else 0.0) for stem, much in sums.items()
    }
    return _Entry(spec, held, name, frozenset(stems["server"]))


def _texts_of(spec: ToolSpec) -> dict[str, str]:
    """Return the text of each of `FIELDS`."""
    return {
        "name": spec.upstream_name,
        "server": spec.server,
        "brief": spec.brief,
        "full": spec.full,
        "parameters": " ".join(_said_by({"properties": spec.parameters, "$defs": spec.input_schema.get("$defs")})),
        "examples": " ".join(spec.examples),
    }


def _said_by(schema: dict[str, Any]) -> Iterator[str]:
    """Yield a schema's names, descriptions and allowed words, with those of its parts."""
    for name, part in parts_of(schema):
        description, allowed = part.get("description"), part.get("enum")
        yield name
        if isinstance(description, str):
            yield description
        if isinstance(allowed, list):
            yield from (value for value in allowed if isinstance(value, str))


def _updated(index: _Index, gone: Sequence[_Entry], new: Sequence[_Entry]) -> _Index:
    """Return an index that shares with `index` what stays the same."""
    changed = {stem: dict(index.get(stem, {})) for entry in chain(gone, new) for stem in entry.held}
    for entry in gone:
        for stem in entry.held:
            del changed[stem][entry.spec.name]
    for entry in new:
        for stem, held in entry.held.items():
            changed[stem][entry.spec.name] = held
    return {stem: holders for stem, holders in (index | changed).items() if holders}
