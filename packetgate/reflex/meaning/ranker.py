"""Rank tools by words and by meaning.

Candidates are tools that share words with the request, and tools with the nearest vectors; learned trees score them.
Until the encoder's vectors of new tools are computed, static vectors are used.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from packetgate.ranking.bm25 import Lexical, ScoredRequest
from packetgate.tools.learned import DIGITS
from packetgate.tools.spec.tool_spec import ToolSpec

if TYPE_CHECKING:
    from packetgate.reflex.meaning.encoder import Vectors
    from packetgate.reflex.meaning.space import Space

STATIC_AT_ONCE = 3_000
"""Maximum static vectors that are computed while a request waits."""


class SemanticModel:
    """Compares tools and requests by meaning. It is loaded at first use, because numpy is slow to load."""

    def __init__(self, path: Path | None = None) -> None:
        """Store the vectors of tools in the file `path`, or only in memory."""
        self._path = path
        self.trees = Path(__file__).with_name("weights") / "mix.npz"
        """File of the trees."""

    def kept_in(self, file: Path) -> "SemanticModel":
        """Return a model that stores vectors in a file."""
        return SemanticModel(file)

    def index(self, specs: Mapping[str, ToolSpec], lexical: Lexical) -> "SemanticIndex":
        """Return an index of tools."""
        return SemanticIndex(self, specs, lexical)

    @cached_property
    def fine(self) -> "Vectors":
        """The vectors of the sentence encoder."""
        from packetgate.reflex.meaning.encoder import Vectors, sentence_encoder

        return Vectors(sentence_encoder(), self._path)

    @cached_property
    def coarse(self) -> "Vectors":
        """The static vectors, which are used until those of the sentence encoder are computed."""
        from packetgate.reflex.meaning.encoder import Vectors, static_encoder

        return Vectors(static_encoder(), at_once=STATIC_AT_ONCE)


class SemanticIndex:
    """The tools of a catalogue as vectors."""

    def __init__(self, meaning: SemanticModel, specs: Mapping[str, ToolSpec], lexical: Lexical) -> None:
        self._meaning, self._specs, self._lexical = meaning, specs, lexical
        self._space: Space | None = None

    def scores(self, request: ScoredRequest) -> Mapping[str, float] | None:
        """Return the score of each candidate, from 0 to 1; None if no vectors are computed yet. May block."""
        space = self._best_space()
        return space.scores(request, self._lexical) if space else None

    def nearness(self, request: str, names: Iterable[str]) -> dict[str, float]:
        """Return the cosine similarity of the request and each of the tools, by the shipped encoder. May block.

        Raise `WeightsError` if the weights are missing or broken.
        """
        from packetgate.reflex.meaning.encoder import encoded_text, vector_of

        vector, space = vector_of(request), self._best_space()
        is_final = space is not None and space.vectors is self._meaning.fine
        rows = {
            name: space.row(name) if space and is_final else vector_of(encoded_text(self._specs[name]))
            for name in names
        }
        return {name: round(float(vector @ row), DIGITS) for name, row in rows.items()}

    def _best_space(self) -> "Space | None":
        """Return the best space whose vectors of all tools are computed, or None."""
        if not self._specs or (self._space and self._space.vectors is self._meaning.fine):
            return self._space
        from packetgate.reflex.meaning.encoder import encoded_text
        from packetgate.reflex.meaning.space import Space, load_ranking_trees

        texts = [*map(encoded_text, self._specs.values())]
        for kind, vectors in (("fine", self._meaning.fine), ("coarse", self._meaning.coarse)):
            rows = vectors.of(texts)
            if rows is not None:
                self._space = Space([*self._specs], rows, vectors, load_ranking_trees(self._meaning.trees)[kind])
            if self._space:
                break
        return self._space
