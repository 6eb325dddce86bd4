"""The palette: the few tools a turn may use, in full, in brief or by name, and why each is there."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from packetgate.state.sections import PaletteDetail, PaletteEntry
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.palette.candidates import Candidates, PaletteRequest, ranked_hits
from packetgate.tools.palette.subject import Subject, subject_of, subject_shift
from packetgate.tools.palette.texts import LEVELS, counted_tokens
from packetgate.tools.usage.learning import sharpened

FULL_LEAST, FULL_BEST, FULL_SCORE = 2, 5, 0.55
"""How many of the best are shown in full beside those that always are, at least and at most; between, those whose score
is at least this share of the best one's: fewer, where one is far ahead."""
FULL_SHARE = 1 / 3
"""The share of the budget for texts in full, while others wait for room: what the selection asks for may take all."""
BRIEF_LEAST, BRIEF_BEST, BRIEF_SCORE = 4, 12, 0.15
"""The same of those shown at least in brief; the others by name, so that the budget holds many more of them."""
SHARE = 0.5
"""The most of the whole catalogue, in tokens, that a palette may take: else it would save nothing."""
MOST_RECENT = 8
"""Recently used tools that a session remembers; `recent_tools` says how many of them a palette has."""
WORTH_SAVING = 800
"""Tokens up to which a palette may take more."""


@dataclass(frozen=True)
class Palette:
    """What was chosen for a request."""

    entries: tuple[PaletteEntry, ...]
    tokens: int
    """Of the entries' texts."""
    subject: Subject
    """What the request is about."""
    left_out: int
    """How many tools fit the request and had no room."""
    shift: str = ""
    """How the session's subject has changed with it."""
    note: str = ""
    """What was out of the ordinary."""


def choose_palette(wanted: PaletteRequest, catalogue: Catalogue) -> Palette:
    """Choose at most `size` tools within the token budget, never none while the catalogue has any.

    What was learned may reorder the tools and add some. It removes none: a tool that would be chosen without it is
    shown at least by name, beyond size and budget if need be.
    """
    subject = subject_of(wanted.words, catalogue.preferences.category_words)
    hits, taught = ranked_hits(wanted, catalogue, subject)
    room = _Room(wanted, catalogue)
    chosen = _choose(wanted, catalogue, Candidates(wanted, catalogue, sharpened(hits, taught), subject), room)
    if not taught:
        return chosen
    names = {entry.tool_name for entry in chosen.entries}
    unlearned = _choose(wanted, catalogue, Candidates(wanted, catalogue, hits, subject), room.emptied())
    missing = [entry.changed(shown="name") for entry in unlearned.entries if entry.tool_name not in names]
    more = sum(room.tokens(entry.tool_name, "name") for entry in missing)
    return replace(
        chosen,
        entries=(*chosen.entries, *missing),
        tokens=chosen.tokens + more,
        left_out=max(0, chosen.left_out - len(missing)),
        note=unlearned.note if missing else chosen.note,
    )


def _choose(wanted: PaletteRequest, catalogue: Catalogue, candidates: Candidates, room: "_Room") -> Palette:
    reasons = candidates.reasons()
    always = list(dict.fromkeys([*candidates.wishes, *candidates.first, *candidates.permanent]))
    order = list(dict.fromkeys([*always, *reasons]))
    scores = {hit.name: hit.score for hit in candidates.hits}
    best = [name for name in order if reasons[name] in {"ranked", "default"}][:BRIEF_BEST]
    others = [name for name in order if reasons[name] not in {"ranked", "default"}]
    fully = [*others, *_near(best[:FULL_BEST], scores, FULL_SCORE, FULL_LEAST)]
    briefly = [*others, *_near(best, scores, BRIEF_SCORE, BRIEF_LEAST)]

    budget = room.budget
    room.show(candidates.wishes, "full", budget, must=reasons[order[0]] == "described" if order else False)
    room.show(always, "name", budget, must=True)
    room.show(fully, "full", int(budget * FULL_SHARE))
    room.show(briefly, "brief", budget)
    room.show(order, "name", budget, must=True)
    room.show(fully, "full", budget)

    notes = [candidates.note(), _without_room([name for name in always if name not in room.shown])]
    return Palette(
        entries=tuple(
            [
                PaletteEntry(
                    tool_name=name,
                    shown=room.shown[name],
                    reason=reason,
                    risk=catalogue[name].risk,
                    score=scores.get(name, 0.0),
                )
                for name, reason in reasons.items()
                if name in room.shown
            ]
        ),
        tokens=room.spent,
        subject=candidates.subject,
        left_out=len(scores.keys() - room.shown.keys()),
        shift=subject_shift(wanted.subject, candidates.subject.terms, catalogue.preferences.category_words),
        note="; ".join(filter(None, notes)),
    )


class _Room:
    """Who is on a palette so far, and what they take."""

    def __init__(self, wanted: PaletteRequest, catalogue: Catalogue) -> None:
        self._wanted = wanted
        self._catalogue = catalogue
        self._sizes: dict[tuple[str, PaletteDetail], int] = {}
        self.shown: dict[str, PaletteDetail] = {}
        self.spent = 0
        self.budget = self._budget()
        """The tokens that a palette may take: fewer for a small catalogue."""

    def emptied(self) -> "_Room":
        """Return it without any tool."""
        self.shown, self.spent = {}, 0
        return self

    def show(self, names: Iterable[str], shown: PaletteDetail, limit: int, *, must: bool = False) -> None:
        """Show tools so, where they are shown less as yet and all stays within the limit.

        Args:
            must: show the first whatever it takes, where there is none as yet.
        """
        for name in names:
            before = self.shown.get(name)
            if before is None and len(self.shown) >= self._wanted.size:
                continue
            if before is not None and LEVELS.index(shown) <= LEVELS.index(before):
                continue
            more = self.tokens(name, shown) - (self._sizes[name, before] if before else 0)
            if self.spent + more <= limit or (must and not self.shown):
                self.shown[name] = shown
                self.spent += more

    def tokens(self, name: str, shown: PaletteDetail) -> int:
        """Return how many tokens a tool's text takes. Blocking, when it was not counted lately."""
        size = self._sizes.get((name, shown))
        if size is None:
            text = self._wanted.text(self._catalogue[name], shown)
            size = self._sizes[name, shown] = counted_tokens(self._wanted.tokens.count, text)
        return size

    def _budget(self) -> int:
        """Of a large catalogue no more is counted than is needed to tell."""
        wanted, whole = self._wanted, 0
        for name in self._catalogue:
            whole += self.tokens(name, "full")
            if whole >= wanted.token_budget / SHARE:
                return wanted.token_budget
        return min(wanted.token_budget, max(WORTH_SAVING, int(whole * SHARE)))


def _near(best: Sequence[str], scores: Mapping[str, float], share: float, least: int) -> list[str]:
    """Return the first of the best, and all but those whose score falls behind the highest."""
    enough = share * max(scores.values(), default=0.0)
    return [name for at, name in enumerate(best) if at < least or scores.get(name, enough) >= enough]


def _without_room(names: Collection[str]) -> str:
    """Say which tools should stand on the palette and do not fit; empty when all do."""
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return f"there was no room for {', '.join(list(names)[:4])}{more}" if names else ""


def with_recent(recent: Sequence[str], used: Iterable[str]) -> tuple[str, ...]:
    """Return the session's recent tools after a success: newest first, no repeats, at most eight."""
    return tuple(dict.fromkeys([*used, *recent]))[:MOST_RECENT]
