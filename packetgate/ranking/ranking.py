"""Rank the tools of a catalogue for a request: by common words, and by the scores of a plug-in."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Protocol, Self, runtime_checkable

from packetgate.plugins import installed
from packetgate.ranking.bm25 import Lexical, Ranked, ScoredRequest, top_names, words_by_stem
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.words import query_terms


class RankerIndex(Protocol):
    """The tools of one catalogue, ready to be scored. Threads share it."""

    def scores(self, request: ScoredRequest) -> Mapping[str, float] | None:
        """Return the score of each tool that may serve the request, above 0; None: the words decide. May block."""
        ...


@runtime_checkable
class Ranker(Protocol):
    """Scores tools for requests."""

    def kept_in(self, file: Path) -> Self:
        """Return a ranker that stores its results in a file."""
        ...

    def index(self, specs: Mapping[str, ToolSpec], lexical: Lexical) -> RankerIndex:
        """Return an index of tools; `lexical` is their index of words."""
        ...


def ranking_of(catalogue: Catalogue) -> "Ranking":
    """Return the ranking of a catalogue's tools. Creating and using it blocks: use it outside the event loop."""
    return catalogue.derived(_ranking)


def _ranking(catalogue: Catalogue) -> "Ranking":
    ranker = catalogue.ranker
    return Ranking(catalogue.values(), ranker if isinstance(ranker, Ranker) else None)


class Ranking:
    """Ranks a set of tools for requests. Threads can share it."""

    def __init__(self, specs: Iterable[ToolSpec], meaning: Ranker | None = None) -> None:
        """Rank by this ranker; None: by that of the installed plug-ins. Without any, the words decide alone."""
        self._specs = {spec.name: spec for spec in specs}
        self._meaning = meaning
        self._lexical = Lexical(self._specs.values())

    @cached_property
    def index(self) -> RankerIndex | None:
        """The ranker's index of the tools; None without a ranker."""
        ranker: Ranker | None = self._meaning or installed().part("rankers")
        return ranker.index(self._specs, self._lexical) if ranker else None

    def rank(self, request: str, limit: int = 20) -> list[Ranked]:
        """Return the tools that may serve the request, best first; ties in order of name. May block.

        Raise `WeightsError` if a ranker's weights are missing or broken.
        """
        parsed = self._lexical.parse(request, limit)
        found = self.index.scores(parsed) if parsed.texts and self.index else None
        scores = parsed.scores if found is None else found
        return [self._lexical.ranked(name, scores[name], parsed.words) for name in top_names(scores, limit)]

    def unknown_words(self, request: str) -> tuple[str, ...]:
        """Return the words of the request, in order, that occur in no tool in any form."""
        words = words_by_stem(request)
        unknown = words.keys() - {*self._lexical.known_stems(words)}
        return tuple(word for word in query_terms(request) if any(word in words[stem] for stem in unknown))
