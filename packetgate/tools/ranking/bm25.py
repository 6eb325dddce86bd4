"""Lexical ranking of tools against a request: BM25 over weighted fields (BM25F), on Porter's stems.

A tool's part of the index depends on nothing but the tool, and how rare a word is, is counted when it is asked for: so
an index takes over what has not changed from an earlier one.
"""

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

from packetgate.tools.spec.tool_spec import ToolSpec, parts_of
from packetgate.tools.text.words import STOP_WORDS, query_terms, stem_of, words_in

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
    "about": Field(0.25, 15),
}
"""The brief description is the first part of the full one: its words count twice. What a server says of itself, its
tools share: it tells servers apart, and hardly tools."""
CONCATENATED = ("server", "name", "full", "parameters")
"""The fields that make up all that a tool says, without repeats."""
COUNT_BITS = 4
MOST_COUNTED = (1 << COUNT_BITS) - 1


class Held(NamedTuple):
    """What a stem says of a tool that holds it."""

    weight: float
    """How much, from 0 to 1."""
    name_share: float
    """Its share of the tool's name."""
    counts: int = 0
    """How often each of `FIELDS` holds it, `COUNT_BITS` a field, at most `MOST_COUNTED`."""


_Index = dict[str, dict[str, Held]]
"""By stem and tool."""


@dataclass(frozen=True)
class _Entry:
    """A tool in the index, by its stems."""

    spec: ToolSpec
    held: dict[str, Held]
    name: frozenset[str]
    server: frozenset[str]
    length: int
    """In words that say something, each field once."""


@dataclass(frozen=True)
class Ranked:
    """A tool and how well it fits; higher is better, always above 0."""

    name: str
    score: float
    words: Mapping[str, set[str]] = field(default_factory=dict, repr=False, compare=False)
    """Of the request, by their stems."""
    entry: _Entry | None = field(default=None, repr=False, compare=False)
    """What the index holds of the tool."""

    @property
    def terms(self) -> frozenset[str]:
        """Words of the request that the tool knows."""
        return self._said(self.entry.held) if self.entry else frozenset()

    @property
    def name_terms(self) -> frozenset[str]:
        """Those that its name or its server's holds."""
        return self._said(self.entry.name | self.entry.server) if self.entry else frozenset()

    def _said(self, stems: Collection[str]) -> frozenset[str]:
        return frozenset(chain.from_iterable(said for stem, said in self.words.items() if stem in stems))


class Lexical:
    """An index over one set of tools; it never changes, and threads may share it."""

    def __init__(self, specs: Iterable[ToolSpec], earlier: "Lexical | None" = None) -> None:
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
        words = words_by_stem(request)
        scores = self.scores(words)
        best = heapq.nsmallest(limit, scores, key=lambda name: (-scores[name], name))
        return [self.ranked(name, scores[name], words) for name in best]

    def rarity(self, stem: str) -> float:
        """Return how much it says that a tool holds a stem: its inverse document frequency."""
        holders = len(self._index.get(stem, ()))
        return math.log1p((len(self._entries) - holders + 0.5) / (holders + 0.5))

    def known(self, stems: Iterable[str]) -> list[str]:
        """Return those of the stems that some tool holds, in a fixed order."""
        return sorted(self._index.keys() & stems)

    def counts(self, name: str, stems: Sequence[str]) -> list[int]:
        """Return for each stem how often each field of a tool holds it, packed as in `Held`."""
        held = self._entries[name].held
        return [held[stem].counts if stem in held else 0 for stem in stems]

    def server(self, name: str) -> str:
        """Return whose tool it is."""
        return self._entries[name].spec.server

    def name_size(self, name: str) -> int:
        """Return how many stems a tool's name has."""
        return len(self._entries[name].name)

    def length(self, name: str) -> int:
        """Return how many words a tool's texts have."""
        return self._entries[name].length

    @cached_property
    def usual_length(self) -> float:
        """The mean of the tools' lengths."""
        return sum(entry.length for entry in self._entries.values()) / max(1, len(self._entries))

    def scores(self, stems: Iterable[str]) -> dict[str, float]:
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

    def ranked(self, name: str, score: float, words: Mapping[str, set[str]]) -> Ranked:
        """Return a tool with its score, for a request's words by their stems."""
        return Ranked(name, score, words, self._entries[name])


def words_by_stem(request: str) -> dict[str, set[str]]:
    """Return the request's words that say something, by their stems."""
    words: dict[str, set[str]] = {}
    for word in query_terms(request):
        words.setdefault(stem_of(word), set()).add(word)
    return words


def _entry(spec: ToolSpec) -> _Entry:
    words = {part: words_in(text) for part, text in _texts_of(spec).items()}
    stems = {part: [stem_of(word) for word in said if word not in STOP_WORDS] for part, said in words.items()}
    sums: defaultdict[str, float] = defaultdict(float)
    counts: defaultdict[str, int] = defaultdict(int)
    for place, (part, (weight, usual_length)) in enumerate(FIELDS.items()):
        length = 1 - LENGTH_SHARE + LENGTH_SHARE * len(words[part]) / usual_length
        for stem, often in Counter(stems[part]).items():
            sums[stem] += often * weight / length
            counts[stem] |= min(often, MOST_COUNTED) << COUNT_BITS * place
    name = frozenset(stems["name"])
    held = {
        stem: Held(much / (much + SATURATION), 1 / len(name) if stem in name else 0.0, counts[stem])
        for stem, much in sums.items()
    }
    return _Entry(spec, held, name, frozenset(stems["server"]), sum(len(stems[field]) for field in CONCATENATED))


def _texts_of(spec: ToolSpec) -> dict[str, str]:
    """Return the text of each of `FIELDS`."""
    return {
        "name": spec.upstream_name,
        "server": spec.server,
        "brief": spec.brief,
        "full": spec.full,
        "parameters": " ".join(_said_by({"properties": spec.parameters, "$defs": spec.input_schema.get("$defs")})),
        "examples": " ".join(spec.examples),
        "about": spec.server_about,
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
