"""Which tools have a claim to be on a palette, and why."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from packetgate.state.sections import Access, Shown
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.palette.subject import subject_of
from packetgate.tools.palette.texts import describe
from packetgate.tools.ranking.bm25 import Ranked
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.tokens import ESTIMATE, TokenCounter
from packetgate.tools.usage.learning import GENERAL, Learned, sharpened

RECENT_TOOLS = 6

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
    seen: Collection[str] = ()
    """The last palette, where nothing on it would do: what it had no room for comes next."""
    guarded: bool = False
    """Whether a tool's output has been read: what the selection wishes for must then speak to the user's words too."""
    tokens: TokenCounter = ESTIMATE
    text: Callable[[ToolSpec, Shown], str] = describe
    """What is shown of a tool."""
    learned: Learned | None = None
    """What the user's confirmed calls have taught."""


class Candidates:
    """The tools with a claim, for one request."""

    def __init__(self, wanted: PaletteRequest, catalogue: Catalogue) -> None:
        self._wanted = wanted
        self._catalogue = catalogue
        self.subject = subject_of(wanted.words)
        """What the request is about."""
        self.hits = self._ranked_hits()
        """The tools that fit it, best first: more than there is room for, so that a wider palette can go on there."""
        best = [hit.name for hit in self.hits]
        self.first = tuple(dict.fromkeys([*catalogue.named_in(wanted.words), *best[:1]]))
        """The tools that the request names, and the best ranked: only wishes get their place before them."""
        self.pool = sorted(catalogue.pool(wanted.context_type), key=lambda name: not self.is_asked_for(name))
        """The tools that the conversation begins with; those that it asks for first."""
        canonical = {name: catalogue.canonical(name) for name in (*wanted.described, *wanted.missed)}
        self.wishes = tuple(
            dict.fromkeys(name for name in canonical.values() if name and (not wanted.guarded or self._speaks(name)))
        )
        """What the selection asked for."""
        self._described = {canonical[name] for name in wanted.described}

    def reasons(self) -> dict[str, Reason]:
        """Return why each tool may stand on the palette, the strongest claim first."""
        wanted, half = self._wanted, self._wanted.size // 2
        seen = () if self.wishes else wanted.seen
        ranked = sorted((hit.name for hit in self.hits), key=lambda name: name in seen)
        by_reason: list[tuple[Reason, Iterable[str]]] = [
            ("described", [name for name in self.wishes if name in self._described]),
            ("widened", self.wishes),
            ("permanent", self._catalogue.permanent),
            ("recent", list(wanted.recent)[:RECENT_TOOLS]),
            ("ranked", [*self.first, *ranked[:half]]),
            ("default", self.pool[:half]),
            ("ranked", ranked[half:]),
            ("default", self._samples() if wanted.seen or not ranked or len(self._catalogue) <= wanted.size else ()),
        ]
        reasons: dict[str, Reason] = {}
        for reason, names in by_reason:
            for name in names:
                if name in self._catalogue:
                    reasons.setdefault(name, reason)
        return reasons

    def is_asked_for(self, name: str) -> bool:
        """Whether the request asks for what such a tool does: it changes or runs nothing, or reaches out, unasked."""
        spec = self._catalogue[name]
        return spec.looks in self._wanted.access.risks and (not spec.is_external or self.subject.outside)

    def _speaks(self, name: str) -> bool:
        """Whether a tool has to do with the user's words, or with the session."""
        known = name in self.pool or name in self._catalogue.permanent or name in self._wanted.recent
        return known or any(hit.name == name and hit.terms for hit in self.hits)

    def note(self) -> str:
        """Say what is out of the ordinary."""
        wanted = self._wanted
        if wanted.context_type != GENERAL and not self._catalogue.pool(wanted.context_type):
            return f"no tool is there for a conversation on {wanted.context_type!r}"
        risks = {hit.name: self._catalogue[hit.name].looks for hit in self.hits}
        if any(risks[hit.name] in wanted.access.risks and hit.terms for hit in self.hits):
            return ""
        offered = {risks[hit.name] for hit in [hit for hit in self.hits if hit.terms] or self.hits}
        if not offered or offered & wanted.access.risks:
            return ""
        return f"nothing else fits this {wanted.access} request, so {' and '.join(sorted(offered))} tools are offered"

    def _ranked_hits(self) -> list[Ranked]:
        """Rank by the request's words; by the session's subject where they tell nothing."""
        wanted, earlier = self._wanted, " ".join(self._wanted.subject)
        for words in (wanted.words, earlier) if self.subject.is_told or not earlier else (earlier,):
            hits = self._catalogue.ranking.rank(words, limit=2 * wanted.size)
            taught = wanted.learned.support(words, wanted.context_type) if wanted.learned else {}
            known = {name: share for name, share in taught.items() if name in self._catalogue}
            if hits or known:
                return sharpened(hits, known)
        return []

    def _samples(self) -> list[str]:
        """Return tools of all servers, for a request that says nothing of any; those that it asks for first."""
        samples = self._catalogue.samples[: 2 * self._wanted.size]
        return sorted(samples, key=lambda name: not self.is_asked_for(name))
