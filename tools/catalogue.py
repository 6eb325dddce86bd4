"""Every tool of every server, under canonical names."""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from tools.ranking import Ranker, Ranking
from tools.risk import words_of
from tools.spec import ToolSpec


class Catalogue(Mapping[str, ToolSpec]):
    """An immutable set of tools, in a fixed order: by name."""

    def __init__(self, specs: Iterable[ToolSpec] = (), earlier: "Catalogue | None" = None) -> None:
        """Hold `specs`; only those that `earlier` did not hold are read for the ranking."""
        self._index_before = earlier._index_so_far if earlier else None
        self._specs = {spec.name: spec for spec in sorted(specs, key=lambda spec: spec.name)}
        self._by_words: dict[tuple[str, ...], list[str]] = {}
        for name, spec in self._specs.items():
            for alias in {tuple(words_of(name)), tuple(words_of(spec.upstream_name))}:
                if alias and name.isascii():
                    self._by_words.setdefault(alias, []).append(name)

    def __getitem__(self, name: str) -> ToolSpec:
        return self._specs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._specs)

    def __len__(self) -> int:
        return len(self._specs)

    @property
    def ranking(self) -> Ranker:
        """What ranks the tools, made at first use. Both block: off the event loop."""
        return self._index

    @cached_property
    def _index(self) -> Ranking:
        return Ranking(self._specs.values(), earlier=self._index_before)

    @property
    def _index_so_far(self) -> Ranking | None:
        """This catalogue's index if it was ever used, else the last one before it."""
        index: Ranking | None = vars(self).get("_index", self._index_before)
        return index

    def canonical(self, name: str) -> str | None:
        """Return the one tool that `name` can only mean: itself, another spelling, or its name without the server."""
        if name in self._specs:
            return name
        found = self._by_words.get(tuple(words_of(name)), [])
        return found[0] if len(found) == 1 else None

    def nearest(self, name: str, limit: int = 5) -> tuple[str, ...]:
        """Return the canonical names most like `name`, nearest first."""
        by_name = difflib.get_close_matches(name, self._specs, n=limit, cutoff=0.5)
        by_words = [hit.name for hit in self.ranking.rank(" ".join(words_of(name)), limit)]
        return tuple(dict.fromkeys([*by_name, *by_words]))[:limit]
