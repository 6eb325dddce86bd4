"""Which tools have a claim to be on a palette, and why."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from packetgate.state.sections import Access, PaletteDetail
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.palette.subject import Subject
from packetgate.tools.palette.texts import describe
from packetgate.tools.ranking.bm25 import Ranked
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.tokens import ESTIMATE, TokenCounter
from packetgate.tools.usage.learning import GENERAL, Learned

Reason = Literal["permanent", "recent", "default", "ranked", "widened", "described"]


@dataclass(frozen=True)
class PaletteRequest:
    """What a palette is chosen by: the user's words and the session, never a tool's output."""

    words: str
    access: Access
    size: int
    token_budget: int
    context_type: str = GENERAL
    person: str = ""
    """Who asks, as the connector names them."""
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
    text: Callable[[ToolSpec, PaletteDetail], str] = describe
    """What is shown of a tool."""
    learned: Learned | None = None
    """What the user's confirmed calls have taught."""


class Candidates:
    """The tools with a claim, for one request."""

    def __init__(self, wanted: PaletteRequest, catalogue: Catalogue, hits: list[Ranked], subject: Subject) -> None:
        self._wanted = wanted
        self._catalogue = catalogue
        said = catalogue.preferences
        self.subject = subject
        """What the request is about."""
        self.hits = hits
        """The tools that fit it, best first: more than there is room for, so that a wider palette can go on there."""
        best = [hit.name for hit in self.hits]
        of_task = catalogue.fitting(said.tools_for(wanted.words))
        self.first = tuple(dict.fromkeys([*catalogue.named_in(wanted.words), *of_task, *best[:1]]))
        """Those that the request names, those of its task, and the best ranked: only wishes get their place first."""
        self.permanent = catalogue.fitting(said.permanent_for(wanted.context_type, wanted.person))
        self.recent = list(wanted.recent)[: said.recent_for(wanted.context_type)]
        self.pool = self._asked_first(catalogue.pool(wanted.context_type))
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
            ("permanent", self.permanent),
            ("recent", self.recent),
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

    def asked_for(self, names: Iterable[str]) -> list[str]:
        """Return those of the tools that neither change or run something nor reach out unasked."""
        risks, outside = self._wanted.access.risks, self.subject.outside
        specs = [self._catalogue[name] for name in names]
        return [spec.name for spec in specs if spec.looks in risks and (outside or not spec.is_external)]

    def _asked_first(self, names: Sequence[str]) -> list[str]:
        return [*dict.fromkeys([*self.asked_for(names), *names])]

    def _speaks(self, name: str) -> bool:
        """Whether a tool has to do with the user's words, or with the session."""
        known = name in self.pool or name in self.permanent or name in self._wanted.recent
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

    def _samples(self) -> list[str]:
        """Return tools of all servers, for a request that says nothing of any; those that it asks for first."""
        return self._asked_first(self._catalogue.samples[: 2 * self._wanted.size])


def ranked_hits(
    wanted: PaletteRequest, catalogue: Catalogue, subject: Subject
) -> tuple[list[Ranked], Mapping[str, float]]:
    """Rank by the request's words, by the session's subject where they say nothing.

    Returns:
        The tools that fit, best first, and how far earlier uses speak for which tools.
    """
    earlier = " ".join(wanted.subject)
    for words in (wanted.words, earlier) if subject.is_client_supplied or not earlier else (earlier,):
        hits = catalogue.ranking.rank(words, limit=2 * wanted.size)
        taught = wanted.learned.support(words, wanted.context_type) if wanted.learned else {}
        known = {name: share for name, share in taught.items() if name in catalogue}
        if hits or known:
            return hits, known
    return [], {}
