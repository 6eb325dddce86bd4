"""Every tool of every server, under canonical names."""

import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import chain, zip_longest

from packetgate.tools.catalogue.chains import CHAINS
from packetgate.tools.catalogue.ledger import LONG_TOKENS, capabilities_ledger, primary_tools, whole_ledger
from packetgate.tools.catalogue.preferences import Preferences, matching, singular
from packetgate.tools.policy.rules import denied_outright
from packetgate.tools.ranking.ranking import SHIPPED, Meaning, Ranking
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.words import words_of

KEPT_LIMITS = 16
"""Sets of allowed tools whose catalogues are kept at hand."""
KEPT_POOLS = 16
"""Types of conversation whose pools are kept at hand."""

_TOKENS = re.compile(r"[^\s\"'`(),;:?!]+")
_IDENTIFIER = re.compile(r"\w[._/-]\w|[a-z][A-Z]")


class Catalogue(dict[str, ToolSpec]):
    """The tools by name, in the order of their names. Once made it is never changed: threads share it."""

    def __init__(
        self,
        specs: Iterable[ToolSpec] = (),
        earlier: "Catalogue | None" = None,
        preferences: Preferences | None = None,
        meaning: Meaning = SHIPPED,
    ) -> None:
        """Hold `specs` as the user prefers them; only those that `earlier` did not hold are read for the ranking."""
        self.preferences = preferences or Preferences()
        self._meaning = meaning
        self._index_before = earlier._index_so_far if earlier else None
        preferred = [self.preferences.applied(spec) for spec in specs]
        super().__init__((spec.name, spec) for spec in sorted(preferred, key=lambda spec: spec.name))
        self.update({one.name: one for one in [*self._leading()]})
        self._by_listed_name = {spec.listed_name: spec.name for spec in reversed(self.values())}
        self._by_words: dict[tuple[str, ...], list[str]] = {}
        for name, spec in self.items():
            for alias in {tuple(words_of(name)), tuple(words_of(spec.upstream_name))}:
                if alias and name.isascii():
                    self._by_words.setdefault(alias, []).append(name)
        self._limited = lru_cache(maxsize=KEPT_LIMITS)(self._only)
        self._pooled = lru_cache(maxsize=KEPT_POOLS)(self._pool)
        self.fitting = lru_cache(maxsize=KEPT_POOLS)(lambda patterns: matching(patterns, self) if patterns else ())
        """Returns the tools that a tuple of patterns stands for, in the patterns' order, each once."""

    def _leading(self) -> Iterator[ToolSpec]:
        """Yield the chains, each with the worst that a tool of its steps looks like."""
        for name, said in self.preferences.chains.items():
            own, steps = self.get(f"{CHAINS}.{name}"), [self.get(step.tool) for step in said.steps]
            looks = [one.looks for one in steps if one is not None]
            if own is not None and looks:
                yield replace(own, leads_to=max(looks, key=lambda risk: risk.severity))

    def updated(self, specs: Iterable[ToolSpec]) -> "Catalogue":
        """Return a catalogue of `specs` under the same preferences; what is in both is not read again. Blocking."""
        new = Catalogue(specs, earlier=self, preferences=self.preferences, meaning=self._meaning)
        _ = new.ledger, new.long_ledger  # here, where it holds up nobody
        return new

    def limited(self, patterns: tuple[str, ...], channel: str) -> "Catalogue":
        """Return the catalogue of the tools that fit one of the patterns, if there are any, and that no rule denies.

        Itself, where that is all of them. Blocking when new.
        """
        return self._limited(patterns, channel)

    def _only(self, patterns: tuple[str, ...], channel: str) -> "Catalogue":
        fitting = matching(patterns, self) if patterns else tuple(self)
        names = [name for name in fitting if not denied_outright(self[name].rules, channel)]
        if len(names) == len(self):
            return self
        fewer = Catalogue((self[name] for name in names), earlier=self, meaning=self._meaning)
        fewer.preferences = self.preferences  # what stands in it is as the user prefers it already
        _ = fewer.ledger, fewer.long_ledger
        return fewer

    @cached_property
    def ranking(self) -> Ranking:
        """What ranks the tools, made at first use. Both block: off the event loop."""
        return Ranking(self.values(), earlier=self._index_before, meaning=self._meaning)

    @property
    def _index_so_far(self) -> Ranking | None:
        """This catalogue's index if it was ever used, else the last one before it."""
        index: Ranking | None = vars(self).get("ranking", self._index_before)
        return index

    @cached_property
    def permanent(self) -> tuple[str, ...]:
        """The tools that stand on every palette."""
        return self.fitting(tuple(self.preferences.permanent))

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """The categories and servers that tools can be asked for by."""
        return tuple(sorted({spec.category for spec in self.values() if spec.category} | {*self.servers}))

    def group(self, name: str) -> tuple[str, ...]:
        """Return the tools of a category or a server, whatever the case of its name; none where it is neither."""
        wanted = name.strip().casefold()
        return tuple(
            spec.name
            for spec in self.values()
            if wanted and wanted in {spec.category.casefold(), spec.server.casefold()}
        )

    def pool(self, context_type: str) -> tuple[str, ...]:
        """Return the tools that a conversation of this type begins with.

        They are those configured for it and, from metadata, those whose server, category or tag has its name.
        """
        return self._pooled(singular(context_type))

    def _pool(self, kind: str) -> tuple[str, ...]:
        named = [
            spec.name
            for spec in self.values()
            if any(singular(own) == kind for own in (spec.server, spec.category, *spec.tags) if own)
        ]
        pools = self.preferences.pools.items()
        configured = [pattern for name, patterns in pools if singular(name) == kind for pattern in patterns]
        return tuple(dict.fromkeys([*matching(configured, self), *named]))

    @cached_property
    def servers(self) -> dict[str, list[ToolSpec]]:
        """The tools of each server, servers and tools in order of name."""
        by_server: dict[str, list[ToolSpec]] = {}
        for spec in sorted(self.values(), key=lambda spec: (spec.server, spec.name)):
            by_server.setdefault(spec.server, []).append(spec)
        return by_server

    @cached_property
    def samples(self) -> tuple[str, ...]:
        """All tools, each server's telling ones first, the servers taking turns."""
        by_server = [primary_tools(specs, self.permanent) for specs in self.servers.values()]
        return tuple(name for name in chain.from_iterable(zip_longest(*by_server)) if name)

    @cached_property
    def ledger(self) -> str:
        """The capabilities ledger that an answer is given."""
        return capabilities_ledger(self.servers, self.permanent)

    @cached_property
    def _whole_ledger(self) -> str:
        return whole_ledger(self.servers)

    @property
    def names_all(self) -> bool:
        """Whether the ledger that tools are chosen by names every tool."""
        return bool(self._whole_ledger)

    @cached_property
    def long_ledger(self) -> str:
        """The ledger that tools are chosen by: it says more, of a small catalogue every tool's name."""
        return self._whole_ledger or capabilities_ledger(self.servers, self.permanent, LONG_TOKENS)

    def exactly(self, name: str) -> str | None:
        """Return the tool that has this canonical name or is listed under this name; None where no tool is."""
        return name if name in self else self._by_listed_name.get(name)

    def canonical(self, name: str) -> str | None:
        """Return the one tool that `name` can only mean.

        It is its canonical name, the name under which it is listed, another spelling, or its name without the server.
        """
        if exact := self.exactly(name):
            return exact
        found = self._by_words.get(tuple(words_of(name)), [])
        server, dot, _ = name.partition(".")
        if dot and server in self.servers:  # what a server does not have, no other's tool stands in for
            found = [one for one in found if self[one].server == server]
        return found[0] if len(found) == 1 else None

    def named_in(self, text: str) -> tuple[str, ...]:
        """Return the tools that stand in a text by a name which is no plain word."""
        tokens = [token.strip(".") for token in _TOKENS.findall(text)]
        found = map(self.canonical, filter(_IDENTIFIER.search, tokens))
        return tuple(dict.fromkeys(name for name in found if name))

    def nearest(self, name: str, limit: int = 5) -> tuple[str, ...]:
        """Return the canonical names most like `name`, nearest first."""
        by_name = difflib.get_close_matches(name, self, n=limit, cutoff=0.5)
        by_words = [hit.name for hit in self.ranking.rank(" ".join(words_of(name)), limit)]
        return tuple(dict.fromkeys([*by_name, *by_words]))[:limit]
