"""Lexical ranking of tools for a request: BM25 over weighted fields (BM25F), on Porter's stems."""

import heapq
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from packetgate.tools.spec.tool_spec import ToolSpec, subschemas
from packetgate.tools.text.words import STOP_WORDS, query_terms, stem_of, words_in

SATURATION = 1.2
"""BM25's k1: how fast the weight of further occurrences of a word decreases."""
LENGTH_SHARE = 0.5
"""BM25's b: how much a longer text reduces the weight of a word, from 0 (not at all) to 1 (in proportion)."""
NAMED_SHARE = 0.5
"""Share by which a score grows if the request contains every word of the tool's name; less for some of the words."""
MAX_MATCHES = 10_000
"""Largest number of pairs of word and tool that are scored for a request, rare words first."""
BY_WORDS = 48
"""Least number of candidates by words, if that many tools match."""
MAX_SENTENCES = 4
ENCODED_CHARS = 2_000
"""Maximum characters of a request that the encoder reads."""
CACHED_ENTRIES = 8_192

_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|\n+")


TOOL_FIELDS = {
    "name": (3.0, 3),
    "server": (1.0, 2),
    "brief": (1.0, 15),
    "full": (1.0, 25),
    "parameters": (0.5, 30),
    "examples": (1.0, 15),
    "about": (0.25, 15),
}
"""Weight of each field of a tool, and its usual number of words. `about` is the server's description."""
CONCATENATED = ("server", "name", "full", "parameters")
"""Fields that together are a tool's text without repetitions."""
COUNT_BITS = 4
MAX_COUNT = (1 << COUNT_BITS) - 1


class _StemWeight(NamedTuple):
    weight: float
    """From 0 to 1."""
    name_share: float
    """Share of the tool's name."""
    counts: int = 0
    """Occurrences in each of `TOOL_FIELDS`, `COUNT_BITS` a field, at most `MAX_COUNT`."""


@dataclass(frozen=True)
class _Entry:
    server: str
    held: dict[str, _StemWeight]
    """Weight and counts of each stem in the tool's fields."""
    name_stems: frozenset[str]
    server_stems: frozenset[str]
    length: int
    """Number of words in the `CONCATENATED` fields, without stop words."""


@dataclass(frozen=True)
class Ranked:
    """A tool and its score; higher is better, always above 0."""

    name: str
    score: float
    terms: frozenset[str] = field(default=frozenset(), repr=False, compare=False)
    """The request's words that occur in the tool's texts."""
    name_terms: frozenset[str] = field(default=frozenset(), repr=False, compare=False)
    """Words of the request that occur in the name of the tool or its server."""


@dataclass(frozen=True)
class ScoredRequest:
    """A request's words and sentences, and its lexical scores."""

    words: Mapping[str, set[str]]
    """The request's words by stem."""
    texts: Sequence[str]
    """The request, and its sentences if there are several; empty for an empty request."""
    scores: Mapping[str, float]
    """The score of every tool that shares a word with the request."""
    best: Sequence[str]
    """The best tools of `scores`, best first."""


class Lexical:
    """A lexical index of tools. It is never modified, so threads can share it."""

    def __init__(self, specs: Iterable[ToolSpec]) -> None:
        self.entries = {spec.name: _entry(spec) for spec in specs}
        self._index: defaultdict[str, dict[str, _StemWeight]] = defaultdict(dict)
        for name, entry in self.entries.items():
            for stem, held in entry.held.items():
                self._index[stem][name] = held

    def parse(self, request: str, limit: int) -> ScoredRequest:
        """Return the parsed request with its lexical scores; `best` has at least `limit` tools if so many match."""
        words = words_by_stem(request)
        scores, text = self.scores(words), request[:ENCODED_CHARS].strip()
        sentences = [part for part in _SENTENCE_END.split(text) if len(part.split()) > 2]
        texts = [text, *(sentences[:MAX_SENTENCES] if len(sentences) > 1 else [])] if text else []
        return ScoredRequest(words, texts, scores, top_names(scores, max(limit, BY_WORDS)))

    def rank(self, request: str, limit: int = 20) -> list[Ranked]:
        """Return the tools that share a word with the request, best first; ties in order of name."""
        words = words_by_stem(request)
        scores = self.scores(words)
        return [self.ranked(name, scores[name], words) for name in top_names(scores, limit)]

    def rarity(self, stem: str) -> float:
        """Return the inverse document frequency of a stem."""
        tool_count = len(self._index.get(stem, ()))
        return math.log1p((len(self.entries) - tool_count + 0.5) / (tool_count + 0.5))

    def known_stems(self, stems: Iterable[str]) -> list[str]:
        """Return the stems that occur in some tool, sorted."""
        return sorted(self._index.keys() & stems)

    @cached_property
    def mean_length(self) -> float:
        """The mean `length` of the tools."""
        return sum(entry.length for entry in self.entries.values()) / max(1, len(self.entries))

    def scores(self, stems: Iterable[str]) -> dict[str, float]:
        """Return the score of every tool that contains a stem; very common stems may be skipped (`MAX_MATCHES`)."""
        scores: defaultdict[str, float] = defaultdict(float)
        name_shares: defaultdict[str, float] = defaultdict(float)
        remaining = MAX_MATCHES
        for stem in sorted(self.known_stems(stems), key=lambda stem: (len(self._index[stem]), stem)):
            weights = self._index[stem]
            remaining -= len(weights)
            if remaining < 0 and scores:
                break
            rarity = self.rarity(stem)
            for name, weight in weights.items():
                scores[name] += rarity * weight.weight
                if weight.name_share:
                    name_shares[name] += weight.name_share
        for name, share in name_shares.items():
            scores[name] *= 1 + NAMED_SHARE * share
        return dict(scores)

    def ranked(self, name: str, score: float, words: Mapping[str, set[str]]) -> Ranked:
        """Return a scored tool with the words that it shares with the request."""
        entry = self.entries[name]
        by_text, by_name = words.keys() & entry.held.keys(), words.keys() & (entry.name_stems | entry.server_stems)
        terms, name_terms = (frozenset(word for stem in stems for word in words[stem]) for stems in (by_text, by_name))
        return Ranked(name, score, terms, name_terms)


def top_names(scores: Mapping[str, float], limit: int) -> list[str]:
    """Return the names with the highest scores, best first; ties in order of name."""
    return heapq.nsmallest(limit, scores, key=lambda name: (-scores[name], name))


def words_by_stem(request: str) -> dict[str, set[str]]:
    """Return the words of a request by stem, without stop words."""
    words: dict[str, set[str]] = {}
    for word in query_terms(request):
        words.setdefault(stem_of(word), set()).add(word)
    return words


@lru_cache(CACHED_ENTRIES)
def _entry(spec: ToolSpec) -> _Entry:
    words = {part: words_in(text) for part, text in _texts_of(spec).items()}
    stems = {part: [stem_of(word) for word in found if word not in STOP_WORDS] for part, found in words.items()}
    sums: defaultdict[str, float] = defaultdict(float)
    counts: defaultdict[str, int] = defaultdict(int)
    for place, (part, (weight, usual_length)) in enumerate(TOOL_FIELDS.items()):
        length = 1 - LENGTH_SHARE + LENGTH_SHARE * len(words[part]) / usual_length
        for stem, count in Counter(stems[part]).items():
            sums[stem] += count * weight / length
            counts[stem] |= min(count, MAX_COUNT) << COUNT_BITS * place
    name = frozenset(stems["name"])
    held = {
        stem: _StemWeight(total / (total + SATURATION), 1 / len(name) if stem in name else 0.0, counts[stem])
        for stem, total in sums.items()
    }
    words_in_all = sum(len(stems[part]) for part in CONCATENATED)
    return _Entry(spec.server, held, name, frozenset(stems["server"]), words_in_all)


def _texts_of(spec: ToolSpec) -> dict[str, str]:
    return {
        "name": spec.upstream_name,
        "server": spec.server,
        "brief": spec.brief,
        "full": spec.full,
        "parameters": " ".join(_schema_texts({"properties": spec.parameters, "$defs": spec.input_schema.get("$defs")})),
        "examples": " ".join(spec.examples),
        "about": spec.server_description,
    }


def _schema_texts(schema: dict[str, Any]) -> Iterator[str]:
    for name, part in subschemas(schema):
        description, allowed = part.get("description"), part.get("enum")
        yield name
        if isinstance(description, str):
            yield description
        if isinstance(allowed, list):
            yield from (value for value in allowed if isinstance(value, str))
