"""Rank the tools of a catalogue for a request.

Candidates are tools that share words with the request, and tools with the nearest vectors; learned trees score them.
Until the encoder's vectors of new tools are computed, static vectors are used.
"""

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from packetgate.tools.learned import DIGITS
from packetgate.tools.ranking.bm25 import Lexical, Ranked, top_names, words_by_stem
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.words import query_terms

if TYPE_CHECKING:
    from packetgate.tools.ranking.space import Space, Spaces


class SemanticModel:
    """Compares tools and requests by meaning. It is loaded at first use."""

    def __init__(self, path: Path | None = None) -> None:
        """Store the vectors of tools in the file `path`, or only in memory."""
        self._path = path

    @cached_property
    def spaces(self) -> "Spaces":
        """The vector spaces."""
        from packetgate.tools.ranking.space import Spaces  # numpy is slow to load

        return Spaces(self._path)


IN_MEMORY = SemanticModel()
"""A model that stores vectors only in memory."""


class Ranking:
    """Ranks a set of tools for requests. Threads can share it."""

    def __init__(self, specs: Iterable[ToolSpec], meaning: SemanticModel = IN_MEMORY) -> None:
        self._specs = {spec.name: spec for spec in specs}
        self._meaning = meaning
        self._lexical = Lexical(self._specs.values())
        self._space: Space | None = None

    def rank(self, request: str, limit: int = 20) -> list[Ranked]:
        """Return the tools that may serve the request, best first; ties in order of name. May block.

        Raise `WeightsError` if the weights are missing or broken.
        """
        parsed = self._lexical.parse(request, limit)
        space = self._best_space() if parsed.texts else None
        scores = space.scores(parsed, self._lexical) if space else parsed.scores
        return [self._lexical.ranked(name, scores[name], parsed.words) for name in top_names(scores, limit)]

    def nearness(self, request: str, names: Iterable[str]) -> dict[str, float]:
        """Return the cosine similarity of the request and each of the tools, by the shipped encoder. May block.

        Raise `WeightsError` if the weights are missing or broken.
        """
        from packetgate.tools.ranking.encoder import encoded_text, vector_of

        vector, space = vector_of(request), self._best_space()
        is_final = space is not None and space.is_final
        rows = {
            name: space.row(name) if space and is_final else vector_of(encoded_text(self._specs[name]))
            for name in names
        }
        return {name: round(float(vector @ row), DIGITS) for name, row in rows.items()}

    def unknown_words(self, request: str) -> tuple[str, ...]:
        """Return the words of the request, in order, that occur in no tool in any form."""
        words = words_by_stem(request)
        unknown = words.keys() - {*self._lexical.known_stems(words)}
        return tuple(word for word in query_terms(request) if any(word in words[stem] for stem in unknown))

    def rank_by_words(self, request: str, limit: int = 20) -> list[Ranked]:
        """Return the tools that share a word with the request, ranked only by BM25, best first."""
        return self._lexical.rank(request, limit)

    @cached_property
    def _texts(self) -> dict[str, str]:
        from packetgate.tools.ranking.encoder import encoded_text

        return {name: encoded_text(spec) for name, spec in self._specs.items()}

    def _best_space(self) -> "Space | None":
        if self._specs and not (self._space and self._space.is_final):
            self._space = self._meaning.spaces.space(self._texts, self._space)
        return self._space
