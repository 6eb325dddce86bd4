"""Which tools have a claim to be on a palette, and why."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Literal

from state.routing import Risk
from state.sections import Access
from tools.catalogue.catalogue import Catalogue
from tools.catalogue.ledger import primary_tools
from tools.palette.subject import Subject
from tools.ranking.bm25 import Ranked
from tools.text.tokens import ESTIMATE, TokenCounter

RECENT_TOOLS = 6
GENERAL = "general"
"""The type of a conversation on nothing in particular."""

_TOKENS = re.compile(r"[^\s\"'`(),;:?!]+")
_IDENTIFIER = re.compile(r"\w[._/-]\w|[a-z][A-Z]")

Reason = Literal["permanent", "recent", "default", "ranked", "widened", "described"]


@dataclass(frozen=True)
class PaletteRequest:
    """What a palette is chosen by: the user's words and the session, never a tool's output."""

    words: str
    access: Access
    size: int
    token_budget: int
    context_type: str = GENERAL
    subject: Sequence[str] = ()
    """What the session was last about: it goes on where the words tell nothing."""
    recent: Sequence[str] = ()
    described: Sequence[str] = ()
    """Tools whose full description the selection asked for."""
    missed: Sequence[str] = ()
    """Tools selected off the last palette, and better ones that an objection named."""
    widened: bool = False
    """Whether nothing on the last palette would do: neither access nor subject narrows the choice then."""
    guarded: bool = False
    """Whether a tool's output has been read: what the selection wishes for must then speak to the user's words too."""
    tokens: TokenCounter = ESTIMATE


class Candidates:
    """The by_reason of one request."""

    def __init__(self, wanted: PaletteRequest, catalogue: Catalogue, subject: Subject, hits: Sequence[Ranked]) -> None:
        self._wanted = wanted
        self._catalogue = catalogue
        self._subject = subject
        self._clear = not wanted.widened and subject.is_clear(hits)
        self._best_inside = max((hit.score for hit in hits if not catalogue[hit.name].is_external), default=0.0)
        near = subject.near(hits) if self._clear else list(hits)
        fitting = [hit for hit in near if self._fits(hit.name, hit.score)]
        self.note = self._of_unknown_type()
        """What is out of the ordinary."""
        if self._clear and near and not fitting:
            risks = " and ".join(sorted({catalogue[hit.name].risk.value for hit in near}))
            self.note = f"nothing else fits this {wanted.access} request, so {risks} tools are offered"
            fitting = near
        self.ranked = [hit.name for hit in fitting]
        """The tools that fit the request, best first."""
        self.pool = self._pool()
        """The tools that the conversation begins with, as far as the request does not narrow them."""
        self.left_out = len(hits) - len(fitting)
        """How many tools share a word with the request and are not offered for it."""
        self.first = tuple(dict.fromkeys([*_named(wanted.words, catalogue), *self.ranked[:1]]))
        """The tools that the request names, and the best ranked: only wishes get their place before them."""
        self.kept = tuple(dict.fromkeys([*self.first, *catalogue.permanent]))
        """What stands on the palette at least in brief, whoever else would be shown in full."""
        self._speaking = {hit.name for hit in hits} | {*self.pool, *catalogue.permanent, *wanted.recent}

    def reasons(self) -> dict[str, Reason]:
        """Return why each tool may stand on the palette, the strongest claim first."""
        wanted, half = self._wanted, self._wanted.size // 2
        by_reason: list[tuple[Reason, Iterable[str]]] = [
            ("described", self._wishes(wanted.described)),
            ("widened", self._wishes(wanted.missed)),
            ("permanent", self._catalogue.permanent),
            ("recent", list(wanted.recent)[:RECENT_TOOLS]),
            ("ranked", [*self.first, *self.ranked[:half]]),
            ("default", self.pool),
            ("ranked", self.ranked[half:]),
            ("default", self._fillers()),
        ]
        reasons: dict[str, Reason] = {}
        for reason, names in by_reason:
            for name in names:
                if name in self._catalogue:
                    reasons.setdefault(name, reason)
        return reasons or dict.fromkeys(self._catalogue, "default")

    def _fits(self, name: str, score: float = 0.0) -> bool:
        """Whether the request asks for such a tool. One that reaches outside may also be what fits it best."""
        if self._wanted.widened:
            return True
        spec = self._catalogue[name]
        inside = not spec.is_external or spec.risk is Risk.EXECUTE  # to run something is never asked for by the way
        called_for = inside or self._subject.outside or score > self._best_inside
        return spec.risk in self._wanted.access.risks and called_for

    def _of_unknown_type(self) -> str:
        context = self._wanted.context_type
        known = context == GENERAL or self._catalogue.pool(context)
        return "" if known else f"no tool is there for a conversation on {context!r}"

    def _pool(self) -> list[str]:
        context = self._wanted.context_type.casefold()
        pool = [name for name in self._catalogue.pool(context) if self._fits(name)]
        is_own_subject = self._subject.terms & {context, f"{context}s"}
        return [name for name in pool if name in self.ranked] if self._clear and not is_own_subject else pool

    def _fillers(self) -> list[str]:
        """Return what else to show for an unclear request: the rest of a small catalogue, samples of a large one."""
        if self._clear and self.ranked:
            return []
        fitting = [name for name in _spread(self._catalogue) if self._fits(name)]
        everything = self._wanted.widened or len(self._catalogue) <= self._wanted.size
        return fitting if everything else fitting[: self._wanted.size // 2]

    def _wishes(self, names: Sequence[str]) -> list[str]:
        known = [name for name in (self._catalogue.canonical(name) for name in names) if name]
        return [name for name in known if not self._wanted.guarded or name in self._speaking]


def _named(words: str, catalogue: Catalogue) -> list[str]:
    """Return the tools that stand in a request by a name which is no plain word."""
    tokens = [token.strip(".") for token in _TOKENS.findall(words)]
    return [name for name in map(catalogue.canonical, filter(_IDENTIFIER.search, tokens)) if name]


def _spread(catalogue: Catalogue) -> list[str]:
    """Return all tools, each server's telling ones first, the servers taking turns."""
    by_server = [primary_tools(specs, catalogue.permanent) for specs in catalogue.servers.values()]
    return [name for name in chain.from_iterable(zip_longest(*by_server)) if name]
