"""The palette: the few tools a turn may use, in full or in brief, and why each is there."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from state.sections import PaletteEntry
from tools.catalogue.catalogue import Catalogue
from tools.palette.candidates import RECENT_TOOLS, Candidates, PaletteRequest
from tools.palette.subject import Subject, subject_of, subject_shift
from tools.palette.texts import describe

FULL_BEST = 4
"""How many of the best are shown in full, beside those that always are."""
SHARE = 0.5
"""The most of the whole catalogue, in tokens, that a palette may take: else it would save nothing."""
WORTH_SAVING = 800
"""Tokens up to which a palette may take more."""

_IN_FULL = frozenset({"permanent", "recent", "described", "widened"})


@dataclass(frozen=True)
class Palette:
    """What was chosen for a request."""

    entries: tuple[PaletteEntry, ...]
    tokens: int
    """Of the entries' texts."""
    subject: Subject
    """What the request is about."""
    left_out: int
    """How many tools share a word with the request and were not offered, for their access or their subject."""
    shift: str = ""
    """How the session's subject has changed with it."""
    note: str = ""
    """What was out of the ordinary."""


def choose_palette(wanted: PaletteRequest, catalogue: Catalogue) -> Palette:
    """Choose at most `size` tools within the token budget, never none while the catalogue has any."""
    subject, hits = subject_of(wanted.words), catalogue.ranking.rank(wanted.words, limit=4 * wanted.size)
    if not hits and wanted.subject:
        words = " ".join(wanted.subject)
        subject, hits = subject_of(words), catalogue.ranking.rank(words, limit=4 * wanted.size)
    candidates = Candidates(wanted, catalogue, subject, hits)
    scores = {hit.name: hit.score for hit in hits}
    budget = _budget(wanted, catalogue)
    kept = {name: wanted.tokens.count(describe(catalogue[name], full=False)) for name in candidates.kept}
    reasons, wishes = candidates.reasons(), {"described", "widened"}
    chosen: dict[str, PaletteEntry] = {}
    spent = best = 0
    for name in sorted(reasons, key=lambda name: (reasons[name] not in wishes, name not in candidates.first)):
        reason = reasons[name]
        in_full = reason in _IN_FULL or best < FULL_BEST
        best += reason not in _IN_FULL
        for shown in ("full", "brief") if in_full else ("brief",):
            cost = wanted.tokens.count(describe(catalogue[name], full=shown == "full"))
            to_come = sum(kept.values()) - kept.get(name, 0) if shown == "full" else 0
            must = not chosen and (shown == "brief" or reason == "described")
            if spent + cost + to_come <= budget or must:
                risk, score = catalogue[name].risk, scores.get(name, 0.0)
                chosen[name] = PaletteEntry(tool_name=name, shown=shown, reason=reason, risk=risk, score=score)
                spent += cost
                kept.pop(name, None)
                break
        if len(chosen) == wanted.size:
            break
    shift = subject_shift(wanted.subject, subject.terms)
    notes = [candidates.note, _without_room(kept)]
    entries = tuple(chosen[name] for name in reasons if name in chosen)
    return Palette(entries, spent, subject, candidates.left_out, shift, "; ".join(filter(None, notes)))


def _without_room(names: Collection[str]) -> str:
    """Say which tools should stand on the palette and do not fit; empty when all do."""
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return f"there was no room for {', '.join(list(names)[:4])}{more}" if names else ""


def _budget(wanted: PaletteRequest, catalogue: Catalogue) -> int:
    """Return the token budget, less for a small catalogue; of a large one no more is counted than is needed to tell."""
    enough, whole = wanted.token_budget / SHARE, 0
    for spec in catalogue.values():
        whole += wanted.tokens.count(describe(spec, full=True))
        if whole >= enough:
            return wanted.token_budget
    return min(wanted.token_budget, max(WORTH_SAVING, int(whole * SHARE)))


def with_recent(recent: Sequence[str], used: Iterable[str]) -> tuple[str, ...]:
    """Return the session's recent tools after a success: newest first, no repeats, at most six."""
    return tuple(dict.fromkeys([*used, *recent]))[:RECENT_TOOLS]
