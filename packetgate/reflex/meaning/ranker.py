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
    from packetgate.reflex.meaning.space import Space, Spaces


class SemanticModel:
    """Compares tools and requests by meaning. It is loaded at first use."""

    def __init__(self, path: Path | None = None) -> None:
        """Store the vectors of tools in the file `path`, or only in memory."""
        self._path = path

    def kept_in(self, file: Path) -> "SemanticModel":
        """Return a model that stores vectors in a file."""
        return SemanticModel(file)

    def index(self, specs: Mapping[str, ToolSpec], lexical: Lexical) -> "SemanticIndex":
        """Return an index of tools."""
        return SemanticIndex(self, specs, lexical)

    @cached_property
    def spaces(self) -> "Spaces":
        """The vector spaces."""
        from packetgate.reflex.meaning.space import Spaces  # numpy is slow to load

        return Spaces(self._path)


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
        is_final = space is not None and space.is_final
        rows = {
            name: space.row(name) if space and is_final else vector_of(encoded_text(self._specs[name]))
            for name in names
        }
        return {name: round(float(vector @ row), DIGITS) for name, row in rows.items()}

    @cached_property
    def _texts(self) -> dict[str, str]:
        from packetgate.reflex.meaning.encoder import encoded_text

        return {name: encoded_text(spec) for name, spec in self._specs.items()}

    def _best_space(self) -> "Space | None":
        if self._specs and not (self._space and self._space.is_final):
            self._space = self._meaning.spaces.space(self._texts, self._space)
        return self._space
