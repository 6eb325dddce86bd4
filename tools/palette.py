"""The palette: the few tools a turn may use, why each is there, and how they read in a prompt."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from state.routing import Risk
from state.sections import Access, PaletteEntry
from tools.catalogue import Catalogue
from tools.spec import ToolSpec

RECENT_TOOLS = 6
FULL_RANKED = 4
"""How many of the best ranked tools are shown in full."""
CHARS_PER_TOKEN = 4
PRIMARY_TOOLS = 5


@dataclass(frozen=True)
class PaletteRequest:
    """What a palette is chosen by: the user's words and the session, never a tool's output."""

    words: str
    access: Access
    size: int
    token_budget: int
    permanent: Sequence[str] = ()
    recent: Sequence[str] = ()
    default_pool: Sequence[str] = ()
    described: Sequence[str] = ()
    missed: Sequence[str] = ()
    """Tools selected off the last palette: they join, and the access no longer narrows the choice."""


def choose_palette(wanted: PaletteRequest, catalogue: Catalogue) -> tuple[PaletteEntry, ...]:
    """Choose at most `size` tools within the token budget, never none while the catalogue has any."""
    ranked = catalogue.ranking.rank(wanted.words, limit=4 * wanted.size)
    scores = {hit.name: hit.score for hit in ranked}
    full_ranked = frozenset(hit.name for hit in ranked[:FULL_RANKED])
    chosen: list[PaletteEntry] = []
    spent = 0
    for name, reason in _candidates(wanted, catalogue, [hit.name for hit in ranked]):
        in_full = reason in {"permanent", "recent", "described", "widened"} or name in full_ranked
        for shown in ("full", "brief") if in_full else ("brief",):
            cost = token_count(describe(catalogue[name], full=shown == "full"))
            must = not chosen and (shown == "brief" or reason == "described")
            if spent + cost <= wanted.token_budget or must:
                chosen.append(
                    PaletteEntry(
                        tool_name=name,
                        shown=shown,
                        reason=reason,
                        risk=catalogue[name].risk,
                        score=scores.get(name, 0.0),
                    )
                )
                spent += cost
                break
        if len(chosen) == wanted.size:
            break
    return tuple(chosen)


def _candidates(wanted: PaletteRequest, catalogue: Catalogue, ranked: list[str]) -> Iterable[tuple[str, str]]:
    """Yield (name, reason), each name once, in the order in which they have a claim."""
    risks = frozenset(Risk) if wanted.missed else wanted.access.risks
    fitting = [name for name in ranked if catalogue[name].risk in risks]
    missed = [name for name in (catalogue.canonical(name) for name in wanted.missed) if name]
    claims: list[tuple[str, Iterable[str]]] = [
        ("described", wanted.described),
        ("widened", missed),
        ("permanent", wanted.permanent),
        ("recent", list(wanted.recent)[:RECENT_TOOLS]),
        ("ranked", fitting[: wanted.size // 2]),
        ("default", wanted.default_pool),
        ("ranked", fitting),
        ("default", [name for name in catalogue if catalogue[name].risk in risks]),
        ("default", catalogue),
    ]
    seen: set[str] = set()
    for reason, names in claims:
        if reason == "default" and names is catalogue and seen:
            return
        for name in names:
            if name in catalogue and name not in seen:
                seen.add(name)
                yield name, reason


def describe(spec: ToolSpec, *, full: bool, briefs: bool = True) -> str:
    """Return a tool's text for a prompt: in full with its schema, or in brief; without `briefs`, its name then."""
    if not full:
        return f"- {spec.name}: {spec.brief}" if briefs else f"- {spec.name}"
    schema = json.dumps(spec.input_schema, ensure_ascii=False, separators=(",", ":"))
    return f"- {spec.name}: {spec.full.strip()}\n  arguments (JSON Schema): {schema}"


def palette_text(entries: Sequence[PaletteEntry], catalogue: Catalogue, *, briefs: bool = True) -> str:
    """Return the palette as a prompt shows it, in order of name so that an unchanged palette reads the same.

    Without `briefs`, a tool that is not shown in full is only named.
    """
    shown = sorted(entries, key=lambda entry: entry.tool_name)
    return "\n".join(
        describe(catalogue[entry.tool_name], full=entry.shown == "full", briefs=briefs)
        for entry in shown
        if entry.tool_name in catalogue
    )


def capabilities_ledger(catalogue: Catalogue) -> str:
    """Return one line a server: how many tools, the first few. The same text until the catalogue changes."""
    lines = []
    for server in sorted({spec.server for spec in catalogue.values()}):
        names = [name for name in catalogue if catalogue[name].server == server]
        more = f", and {len(names) - PRIMARY_TOOLS} more" if len(names) > PRIMARY_TOOLS else ""
        lines.append(f"- {server} ({len(names)} tools): {', '.join(names[:PRIMARY_TOOLS])}{more}")
    return "\n".join(lines) or "- none is connected"


def token_count(text: str) -> int:
    """Estimate tokens: four characters each, rounded up."""
    return -(-len(text) // CHARS_PER_TOKEN)


def with_recent(recent: Sequence[str], used: Iterable[str]) -> tuple[str, ...]:
    """Return the session's recent tools after a success: newest first, no repeats, at most six."""
    return tuple(dict.fromkeys([*used, *recent]))[:RECENT_TOOLS]
