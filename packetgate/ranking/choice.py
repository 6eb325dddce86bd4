"""Choose the palette, with the detail and the reason of each tool."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, get_args

from packetgate.ranking.bm25 import Ranked
from packetgate.ranking.learning import DEFAULT_CONTEXT_TYPE, LearnedUses, add_support
from packetgate.ranking.ranking import ranking_of
from packetgate.ranking.subject import Subject, subject_of
from packetgate.state.sections import Access, PaletteDetail, PaletteEntry
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.preferences import matching_names
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.tokens import ESTIMATE, TokenCounter

FULL_LEAST, FULL_BEST, FULL_SCORE = 2, 5, 0.55
"""Least and largest number of tools in full. Between these limits, a tool needs this share of the best score."""
FULL_SHARE = 1 / 3
"""Share of the budget that full texts may use until all other tools are placed."""
BRIEF_LEAST, BRIEF_BEST, BRIEF_SCORE = 4, 12, 0.15
"""The same limits for tools that are at least in brief; all other tools are only named."""
MOST_RECENT = 8
"""Largest number of recent tools that a session remembers."""
MOST_NAMED = 4

LEVELS: tuple[PaletteDetail, ...] = get_args(PaletteDetail)
"""Levels of detail, from the shortest to the longest text."""
CACHED_COUNTS = 32_768

PaletteReason = Literal["permanent", "recent", "default", "ranked", "widened", "described"]
ToolText = Callable[[ToolSpec, PaletteDetail], str]
"""Returns a tool's text for a prompt."""


def tool_text(spec: ToolSpec, shown: PaletteDetail) -> str:
    """Return a tool's text for a prompt."""
    if shown == "name":
        return f"- {spec.name}"
    return spec.brief_line if shown == "brief" else spec.full_text


@lru_cache(maxsize=CACHED_COUNTS)
def cached_token_count(count: Callable[[str], int], text: str) -> int:
    """Return the number of tokens of a text, cached. May block."""
    return count(text)


@dataclass(frozen=True)
class PaletteRequest:
    """The input for choosing a palette: the user's words and the session, never a tool's output."""

    words: str
    access: Access
    size: int
    token_budget: int
    context_type: str = DEFAULT_CONTEXT_TYPE
    person: str = ""
    """The user, as the connector names them."""
    subject: Sequence[str] = ()
    """The session's last subject, used if the words have none."""
    recent: Sequence[str] = ()
    offered: Sequence[str] = ()
    """Tools that the model was shown in full before; they stay, so that the beginning of its prompt stays the same."""
    described: Sequence[str] = ()
    """Tools whose full description the selection asked for."""
    missed: Sequence[str] = ()
    """Selected tools that were not on the last palette."""
    seen: Collection[str] = ()
    """The last palette, if none of its tools fits; other tools come first."""
    guarded: bool = False
    """Whether a tool's output was read: then `described` and `missed` tools must fit the user's words."""
    tokens: TokenCounter = ESTIMATE
    text: ToolText = tool_text
    learned: LearnedUses | None = None
    """The user's confirmed calls."""


@dataclass(frozen=True)
class Palette:
    """The tools that were chosen for a request."""

    entries: tuple[PaletteEntry, ...]
    tokens: int
    """Number of tokens in the entries' texts."""
    subject_terms: frozenset[str] = frozenset()
    """The subject of the request; empty if the whole catalogue is shown."""
    left_out: int = 0
    """Number of ranked tools that did not fit."""
    note: str = ""
    """A note on an unusual palette."""


def choose_palette(request: PaletteRequest, catalogue: Catalogue) -> Palette:
    """Return a palette of at most `size` tools within the token budget; at least one if the catalogue has tools.

    A catalogue that fits is shown completely.
    """
    return whole_palette(request, catalogue) or ranked_palette(request, catalogue)


def whole_palette(request: PaletteRequest, catalogue: Catalogue) -> Palette | None:
    """Return a palette of all tools in full; None if they do not fit."""
    budget = _TokenBudget(request, catalogue)
    if budget.show_whole_catalogue():
        entries = tuple(
            PaletteEntry(tool_name=name, detail="full", reason="whole", risk=spec.risk)
            for name, spec in catalogue.items()
        )
        return Palette(entries, budget.spent)
    return None


def ranked_palette(request: PaletteRequest, catalogue: Catalogue) -> Palette:
    """Return a palette of the tools that fit the request best, as `choose_palette` does.

    Learned uses may reorder and add tools. A tool that would be chosen without them is still named, even beyond size
    and budget; so are the tools that were offered before.
    """
    return _with_offered_tools(_best_palette(request, catalogue), request, catalogue)


def _best_palette(request: PaletteRequest, catalogue: Catalogue) -> Palette:
    subject = subject_of(request.words, catalogue.preferences.category_words)
    hits, support = _ranked_hits(request, catalogue, subject)
    chosen = _choose(_Candidates(request, catalogue, add_support(hits, support), subject))
    if not support:
        return chosen
    unlearned = _choose(_Candidates(request, catalogue, hits, subject))
    budget, names = _TokenBudget(request, catalogue), {entry.tool_name for entry in chosen.entries}
    missing = [entry.changed(detail="name") for entry in unlearned.entries if entry.tool_name not in names]
    return replace(
        chosen,
        entries=(*chosen.entries, *missing),
        tokens=chosen.tokens + sum(budget.tokens(entry.tool_name, "name") for entry in missing),
        left_out=max(0, chosen.left_out - len(missing)),
        note=unlearned.note if missing else chosen.note,
    )


def recent_after(recent: Sequence[str], used: Iterable[str]) -> tuple[str, ...]:
    """Return the session's recent tools after a success: newest first, no repeats, at most `MOST_RECENT`."""
    return tuple(dict.fromkeys([*used, *recent]))[:MOST_RECENT]


def _ranked_hits(
    request: PaletteRequest, catalogue: Catalogue, subject: Subject
) -> tuple[list[Ranked], Mapping[str, float]]:
    """Return tools ranked by the request's words or the session's subject, and the support of earlier uses."""
    earlier = " ".join(request.subject)
    for words in (request.words, earlier) if subject.is_known or not earlier else (earlier,):
        hits = ranking_of(catalogue).rank(words, limit=2 * request.size)  # more than fit, for a wider palette
        support = request.learned.support(words, request.context_type) if request.learned else {}
        known = {name: share for name, share in support.items() if name in catalogue}
        if hits or known:
            return hits, known
    return [], {}


class _Candidates:
    def __init__(self, request: PaletteRequest, catalogue: Catalogue, hits: list[Ranked], subject: Subject) -> None:
        self.request, self.catalogue, self.hits, self.subject = request, catalogue, hits, subject
        self.pool = sorted(catalogue.pool(request.context_type), key=self._exceeds_request)
        own = catalogue.preferences
        self.permanent = matching_names(own.permanent_patterns(request.context_type, request.person), catalogue)
        self.recent = request.recent[: own.recent_limit(request.context_type)]
        of_task = matching_names(own.task_patterns(request.words), catalogue)
        self.top_names = [*catalogue.tools_named_in(request.words), *of_task, *(hit.name for hit in hits[:1])]
        resolved = {name: catalogue.canonical(name) for name in (*request.described, *request.missed)}
        self.requested = list(
            dict.fromkeys(
                name for name in resolved.values() if name and (not request.guarded or self._is_related(name))
            )
        )
        self.described = {resolved[name] for name in request.described}

    def _exceeds_request(self, name: str) -> bool:
        """Whether a tool has another kind of access, or reaches further, than the request asks for."""
        spec = self.catalogue[name]
        return spec.apparent_risk not in self.request.access.risks or (spec.is_external and not self.subject.outside)

    def _is_related(self, name: str) -> bool:
        known = name in self.pool or name in self.permanent or name in self.request.recent
        return known or any(hit.name == name and hit.terms for hit in self.hits)

    def reasons(self) -> dict[str, PaletteReason]:
        """Return the reason for each candidate, the strongest first."""
        request, catalogue, half = self.request, self.catalogue, self.request.size // 2
        seen = () if self.requested else request.seen
        ranked = sorted((hit.name for hit in self.hits), key=lambda name: name in seen)
        needs_samples = request.seen or not ranked or len(catalogue) <= request.size
        samples = (
            sorted(catalogue.interleaved_names[: 2 * request.size], key=self._exceeds_request) if needs_samples else []
        )
        by_reason: list[tuple[PaletteReason, Sequence[str]]] = [
            ("described", [name for name in self.requested if name in self.described]),
            ("widened", self.requested),
            ("permanent", self.permanent),
            ("recent", self.recent),
            ("ranked", [*self.top_names, *ranked[:half]]),
            ("default", self.pool[:half]),
            ("ranked", ranked[half:]),
            ("default", samples),
        ]
        reasons: dict[str, PaletteReason] = {}
        for reason, names in by_reason:
            for name in names:
                if name in catalogue:
                    reasons.setdefault(name, reason)
        return reasons

    def note(self) -> str:
        """Return a note if the conversation's pool is empty, or only tools of another risk fit the request."""
        request = self.request
        if request.context_type != DEFAULT_CONTEXT_TYPE and not self.pool:
            return f"no tool belongs to conversations of type {request.context_type!r}"
        by_words = [hit for hit in self.hits if hit.terms]
        risks = {self.catalogue[hit.name].apparent_risk for hit in by_words or self.hits}
        if not risks or risks & request.access.risks:
            return ""
        return f"nothing else fits this {request.access} request, so {' and '.join(sorted(risks))} tools are offered"


class _TokenBudget:
    """The tools that are shown so far, and the tokens of their texts."""

    def __init__(self, request: PaletteRequest, catalogue: Catalogue) -> None:
        self._request, self._catalogue = request, catalogue
        self.shown: dict[str, PaletteDetail] = {}
        self.spent, self.budget = 0, request.token_budget

    def tokens(self, name: str, shown: PaletteDetail | None) -> int:
        """Return the tokens of a tool's text; 0 for a tool that is not shown."""
        if shown is None:
            return 0
        return cached_token_count(self._request.tokens.count, self._request.text(self._catalogue[name], shown))

    def show_whole_catalogue(self) -> bool:
        """Show all tools in full if they fit, and return whether they do."""
        before = self._request.offered  # a session that began with a choice continues with it
        if len(self._catalogue) > self._request.size or (before and self._catalogue.keys() - {*before}):
            return False
        total = 0
        for name in self._catalogue:
            total += self.tokens(name, "full")
            if total > self.budget:
                return False
        self.spent = total
        return True

    def show(self, names: Iterable[str], shown: PaletteDetail, limit: int, *, must: bool = False) -> None:
        """Show tools at this level or higher, within the limit; with `must`, the first tool may exceed it."""
        for name in names:
            before = self.shown.get(name)
            if before is None and len(self.shown) >= self._request.size:
                continue
            if before is not None and LEVELS.index(shown) <= LEVELS.index(before):
                continue
            more = self.tokens(name, shown) - self.tokens(name, before)
            if self.spent + more <= limit or (must and not self.shown):
                self.shown[name] = shown
                self.spent += more


def _choose(candidates: _Candidates) -> Palette:
    request, catalogue, reasons = candidates.request, candidates.catalogue, candidates.reasons()
    first_names = list(dict.fromkeys([*candidates.requested, *candidates.top_names, *candidates.permanent]))
    order = list(dict.fromkeys([*first_names, *reasons]))
    scores = {hit.name: hit.score for hit in candidates.hits}
    best = [name for name in order if reasons[name] in {"ranked", "default"}][:BRIEF_BEST]
    others = [name for name in order if reasons[name] not in {"ranked", "default"}]
    in_full = [*others, *_best_scored(best[:FULL_BEST], scores, FULL_SCORE, FULL_LEAST)]
    in_brief = [*others, *_best_scored(best, scores, BRIEF_SCORE, BRIEF_LEAST)]

    shown_tools = _TokenBudget(request, catalogue)
    budget = shown_tools.budget
    shown_tools.show(candidates.requested, "full", budget, must=bool(order) and reasons[order[0]] == "described")
    shown_tools.show(first_names, "name", budget, must=True)
    shown_tools.show(in_full, "full", int(budget * FULL_SHARE))
    shown_tools.show(in_brief, "brief", budget)
    shown_tools.show(order, "name", budget, must=True)
    shown_tools.show(in_full, "full", budget)

    notes = [candidates.note(), _no_room_note([name for name in first_names if name not in shown_tools.shown])]
    entries = [
        PaletteEntry(
            tool_name=name,
            detail=shown_tools.shown[name],
            reason=reason,
            risk=catalogue[name].risk,
            score=scores.get(name, 0.0),
        )
        for name, reason in reasons.items()
        if name in shown_tools.shown
    ]
    return Palette(
        entries=tuple(entries),
        tokens=shown_tools.spent,
        subject_terms=candidates.subject.terms,
        left_out=len(scores.keys() - shown_tools.shown.keys()),
        note="; ".join(filter(None, notes)),
    )


def _best_scored(best: Sequence[str], scores: Mapping[str, float], share: float, least: int) -> list[str]:
    """Return the first `least` tools, and those with at least this share of the best score."""
    threshold = share * max(scores.values(), default=0.0)
    return [name for rank, name in enumerate(best) if rank < least or scores.get(name, threshold) >= threshold]


def _with_offered_tools(palette: Palette, request: PaletteRequest, catalogue: Catalogue) -> Palette:
    """Return a palette that also has the tools that were offered before, in full."""
    budget, chosen = _TokenBudget(request, catalogue), {entry.tool_name: entry for entry in palette.entries}
    tokens = palette.tokens
    for name in [name for name in request.offered if name in catalogue]:
        before = chosen.get(name)
        tokens += budget.tokens(name, "full") - budget.tokens(name, before.detail if before else None)
        new = PaletteEntry(tool_name=name, detail="full", reason="offered", risk=catalogue[name].risk)
        chosen[name] = before.changed(detail="full") if before else new
    return replace(palette, entries=tuple(chosen.values()), tokens=tokens)


def _no_room_note(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"there was no room for {', '.join(names[:MOST_NAMED])}{more}" if names else ""
