"""Every tool of every server, under canonical names."""

import difflib
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import chain, zip_longest
from typing import Any, TypeVar

from packetgate.tools.catalogue.ledger import capabilities_ledger, primary_tools
from packetgate.tools.catalogue.preferences import Preferences, matching_names, normalized_kind
from packetgate.tools.policy.rules import is_always_denied
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.words import stem_of, words_of

T = TypeVar("T")

CACHED = 16
"""Number of cached catalogues (by allow-list) and of cached pools (by kind of conversation)."""

_TOKENS = re.compile(r"[^\s\"'`(),;:?!]+")
_IDENTIFIER = re.compile(r"\w[._/-]\w|[a-z][A-Z]")


class Catalogue(dict[str, ToolSpec]):
    """All tools by canonical name, sorted by name. It is never modified, so threads can share it."""

    def __init__(
        self, specs: Iterable[ToolSpec] = (), preferences: Preferences | None = None, ranker: object | None = None
    ) -> None:
        """Create a catalogue of `specs` with the preferences applied; `ranker` is for `ranking.ranking_of`."""
        self.preferences = preferences or Preferences()
        self.ranker = ranker
        self._derived: dict[object, Any] = {}
        preferred = sorted(map(self.preferences.apply, specs), key=lambda spec: spec.name)
        neighbours: dict[str, list[str]] = {}
        for spec in preferred:
            neighbours.setdefault(spec.server, []).append(spec.upstream_name)
        for spec in preferred:
            names = tuple(neighbours[spec.server])
            self[spec.name] = spec if spec.neighbours == names else replace(spec, neighbours=names)
        self._by_listed_name = {spec.listed_name: spec.name for spec in reversed(self.values())}
        self._by_words: dict[tuple[str, ...], list[str]] = {}
        for name, spec in self.items():
            for alias in {tuple(words_of(name)), tuple(words_of(spec.upstream_name))}:
                if alias and name.isascii():
                    self._by_words.setdefault(alias, []).append(name)
        self.restrict = lru_cache(CACHED)(self._restrict)
        """Cached function of (patterns, channel). It returns the catalogue of the tools that match a pattern (all tools
        if there are no patterns) and that no rule denies. May block."""
        self._cached_pool = lru_cache(CACHED)(self._find_pool)

    def with_tools(self, specs: Iterable[ToolSpec]) -> "Catalogue":
        """Return a catalogue of the tools `specs` with the same preferences. May block."""
        new = Catalogue(specs, self.preferences, self.ranker)
        _ = new.ledger  # computed here, so that no turn waits
        return new

    def _restrict(self, patterns: tuple[str, ...], channel: str) -> "Catalogue":
        allowed = matching_names(patterns, self) if patterns else tuple(self)
        names = [name for name in allowed if not is_always_denied(self[name].rules, channel)]
        if len(names) == len(self):
            return self
        restricted = Catalogue((self[name] for name in names), ranker=self.ranker)
        restricted.preferences = self.preferences  # already applied to these tools
        _ = restricted.ledger
        return restricted

    def derived(self, make: "Callable[[Catalogue], T]") -> T:
        """Return a function's result for the catalogue; the function is called once."""
        if make not in self._derived:
            self._derived[make] = make(self)
        made: T = self._derived[make]
        return made

    @cached_property
    def permanent(self) -> tuple[str, ...]:
        """Names of the tools that are on every palette."""
        return matching_names(self.preferences.permanent, self)

    def group(self, name: str) -> tuple[str, ...]:
        """Return the names of the tools of a category or a server, ignoring case; empty if there is neither."""
        group = name.strip().casefold()
        specs = [spec for spec in self.values() if group in {spec.category.casefold(), spec.server.casefold()}]
        return tuple(spec.name for spec in specs) if group else ()

    def pool(self, context_type: str) -> tuple[str, ...]:
        """Return the names of the tools for a kind of conversation.

        These are configured tools, and tools whose server, category or tag has the name of that kind.
        """
        return self._cached_pool(normalized_kind(context_type))

    def _find_pool(self, kind: str) -> tuple[str, ...]:
        pools = self.preferences.pools.items()
        configured = [pattern for name, patterns in pools if normalized_kind(name) == kind for pattern in patterns]
        named = [
            spec.name
            for spec in self.values()
            if any(normalized_kind(label) == kind for label in (spec.server, spec.category, *spec.tags) if label)
        ]
        return tuple(dict.fromkeys([*matching_names(configured, self), *named]))

    @cached_property
    def servers(self) -> dict[str, list[ToolSpec]]:
        """The tools by server, both sorted by name."""
        by_server: dict[str, list[ToolSpec]] = {}
        for spec in sorted(self.values(), key=lambda spec: (spec.server, spec.name)):
            by_server.setdefault(spec.server, []).append(spec)
        return by_server

    @cached_property
    def interleaved_names(self) -> tuple[str, ...]:
        """Names of all tools, one of each server in turn, each server's primary tools first."""
        by_server = [primary_tools(specs, self.permanent) for specs in self.servers.values()]
        return tuple(name for name in chain.from_iterable(zip_longest(*by_server)) if name)

    @cached_property
    def ledger(self) -> str:
        """The capabilities ledger."""
        return capabilities_ledger(self.servers, self.permanent)

    def exact_name(self, name: str) -> str | None:
        """Return the canonical name of the tool with this canonical or listed name; None if there is none."""
        return name if name in self else self._by_listed_name.get(name)

    def canonical(self, name: str) -> str | None:
        """Return the canonical name of the tool that `name` means; None if there is none, or more than one.

        `name` may be spelled differently, such as in camel case, and may leave out the server.
        """
        if exact := self.exact_name(name):
            return exact
        names = self._by_words.get(tuple(words_of(name)), [])
        server, dot, _ = name.partition(".")
        if dot and server in self.servers:  # a tool that this server lacks is never replaced by another server's tool
            names = [known for known in names if self[known].server == server]
        return names[0] if len(names) == 1 else None

    def tools_named_in(self, text: str) -> tuple[str, ...]:
        """Return the canonical names of the tools that a text names by an identifier; plain words do not count."""
        tokens = [token.strip(".") for token in _TOKENS.findall(text)]
        names = map(self.canonical, filter(_IDENTIFIER.search, tokens))
        return tuple(dict.fromkeys(name for name in names if name))

    def similar_names(self, name: str, limit: int = 5) -> tuple[str, ...]:
        """Return the canonical names that are most similar to `name`, best first."""
        by_name = difflib.get_close_matches(name, self, n=limit, cutoff=0.5)
        words = {*map(stem_of, words_of(name))}
        shared = {known: len(words & {*map(stem_of, words_of(known))}) for known in self}
        by_words = sorted(filter(shared.get, self), key=lambda known: -shared[known])
        return tuple(dict.fromkeys([*by_name, *by_words]))[:limit]
