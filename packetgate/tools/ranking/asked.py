"""A request as the ranking reads it."""

import heapq
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from packetgate.tools.ranking.bm25 import Lexical, words_by_stem

BY_WORDS = 48
"""Candidates for what they say; as many as are asked for, where that is more."""
PARTS = 4
MOST_READ = 2_000
"""Characters of a request that the encoder is shown."""

_PART_END = re.compile(r"(?<=[.!?;])\s+|\n+")


@dataclass(frozen=True)
class Asked:
    """A request's words and parts, and the tools that share its words."""

    words: Mapping[str, set[str]]
    """By stem."""
    texts: Sequence[str]
    """The request, and its sentences where it has several; empty where it says nothing."""
    scores: Mapping[str, float]
    """By words alone, for every tool that shares one."""
    best: Sequence[str]
    """The best of these, in order."""


def asked_of(request: str, lexical: Lexical, limit: int) -> Asked:
    """Return a request as read, with at least `limit` of the tools that share its words."""
    words = words_by_stem(request)
    scores = lexical.scores(words)
    best = heapq.nsmallest(max(limit, BY_WORDS), scores, key=lambda name: (-scores[name], name))
    said = request[:MOST_READ].strip()
    return Asked(words, [said, *_parts_of(said)] if said else [], scores, best)


def _parts_of(request: str) -> Sequence[str]:
    """Return the request's sentences, the first few of them; none where it is but one."""
    parts = [part for part in _PART_END.split(request) if len(part.split()) > 2]
    return parts[:PARTS] if len(parts) > 1 else []
