"""Ranks the tools of a catalogue for a request, by what was learned from requests over other catalogues.

Candidates are the tools that share the request's words and those whose vectors are nearest; trees weigh what is known
of each. While the encoder's vectors of new tools are being made, those of single words serve.
"""

import heapq
from collections.abc import Iterable
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from packetgate.tools.learned import DIGITS
from packetgate.tools.ranking.asked import asked_of
from packetgate.tools.ranking.bm25 import Lexical, Ranked, words_by_stem
from packetgate.tools.ranking.text import text_of
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.words import query_terms

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    from packetgate.tools.ranking.space import Space, Spaces


class Meaning:
    """What compares tools and requests by meaning. It is loaded when it is first asked."""

    def __init__(
        self, path: Path | None = None, embeddings: "Embeddings | None" = None, name: str = "embeddings"
    ) -> None:
        """Keep tools' vectors in the file `path`, or in memory alone; `embeddings` take the shipped encoder's place."""
        self._path, self._embeddings, self._name = path, embeddings, name
        self._spaces: Spaces | None = None
        self._lock = Lock()

    @property
    def spaces(self) -> "Spaces":
        """The spaces of vectors."""
        with self._lock:
            if self._spaces is None:
                from packetgate.tools.ranking.encoder import GivenEmbeddings  # here, because numpy is slow to load
                from packetgate.tools.ranking.space import Spaces

                given = GivenEmbeddings(self._embeddings, self._name) if self._embeddings else None
                self._spaces = Spaces(self._path, given)
            return self._spaces


SHIPPED = Meaning()
"""The shipped encoder; vectors are kept in memory alone."""


class Ranking:
    """An index over one set of tools. Threads may share it."""

    def __init__(self, specs: Iterable[ToolSpec], earlier: "Ranking | None" = None, meaning: Meaning = SHIPPED) -> None:
        """Index `specs`; what `earlier` holds already is not read again."""
        self._specs = {spec.name: spec for spec in specs}
        self._meaning = meaning
        self._lexical: Lexical = Lexical(self._specs.values(), earlier._lexical if earlier else None)
        before = earlier._specs if earlier else {}
        self._texts: dict[str, str] = {
            name: earlier._texts[name] if earlier and before.get(name) == spec else text_of(spec)
            for name, spec in self._specs.items()
        }
        """What the encoder reads of each tool."""
        self._space: Space | None = earlier._space if earlier else None

    def rank(self, request: str, limit: int = 20) -> list[Ranked]:
        """Return the tools that may serve the request, best first; ties in order of name. Blocking.

        Raises:
            WeightsError: what was learned is missing or broken.
        """
        asked = asked_of(request, self._lexical, limit)
        space = self._best_space() if asked.texts and self._specs else None
        scores = space.scores(asked, self._lexical) if space else asked.scores
        best = heapq.nsmallest(limit, scores, key=lambda name: (-scores[name], name))
        return [self._lexical.ranked(name, scores[name], asked.words) for name in best]

    def nearness(self, request: str, names: Iterable[str]) -> dict[str, float]:
        """Return the cosine of the request and each of the tools, rounded, by the encoder that is shipped. Blocking.

        Raises:
            WeightsError: what was learned is missing or broken.
        """
        from packetgate.tools.ranking.encoder import sentence_encoder, vector_of

        asked, space = vector_of(request), self._best_space() if self._specs else None
        made = space if space and space.encoder is sentence_encoder() else None
        rows = {name: made.row(name) if made else vector_of(self._texts[name]) for name in names}
        return {name: round(float(asked @ row), DIGITS) for name, row in rows.items()}

    def unknown_words(self, request: str) -> tuple[str, ...]:
        """Return the request's words that no tool knows in any form, in order."""
        words = words_by_stem(request)
        unknown = words.keys() - {*self._lexical.known(words)}
        return tuple(word for word in query_terms(request) if any(word in words[stem] for stem in unknown))

    def by_words(self, request: str, limit: int = 20) -> list[Ranked]:
        """Return the tools that share a word with the request, by BM25 alone, best first."""
        return self._lexical.rank(request, limit)

    def _best_space(self) -> "Space | None":
        """Return the best space that has a vector of every tool, none where there is none yet."""
        space = self._space
        if space is None or not (space.is_final and space.texts is self._texts):
            space = self._meaning.spaces.space(self._texts, space)
            self._space = space or self._space
        return space
