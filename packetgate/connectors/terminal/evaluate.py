"""`packetgate evaluate`: play a model's cases, and show and keep its passport."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

from langgraph.store.base import BaseStore
from rich.text import Text

from packetgate.connectors import rendering
from packetgate.connectors.terminal.calibrate import diagram
from packetgate.graph.composition import deciders_for
from packetgate.graph.evaluation import play
from packetgate.graph.pool import model_pool
from packetgate.graph.records.passports import forget_evaluation, keep, read_played, version
from packetgate.graph.settings import Settings
from packetgate.graph.storage import open_store
from packetgate.models.pool import ModelPool
from packetgate.state.context import RoutingContext
from packetgate.state.errors import DecisionError, InputError
from packetgate.state.printing import counted
from packetgate.tools.evaluation.cases import Case, load_cases
from packetgate.tools.evaluation.passport import Passport, Played, curves_of
from packetgate.tools.usage.calibration import reliability

STEPS = 40
"""Points of a drawn curve."""
POINTS = (0.3, 0.5, 0.7, 0.9)
"""Confidences at which a curve is shown in words."""
KEPT = "the cases so far are kept: the same command goes on with them"


async def evaluate(
    settings: Settings, context: RoutingContext, cases: Sequence[Case], html: Path | None, *, again: bool, as_json: bool
) -> int:
    """Play the cases without a record and print the passport; a complete one is kept.

    Raises:
        InputError: there is no such model.
        DecisionError: the model cannot be asked.
    """
    pool, of = model_pool(settings), len(load_cases().cases)
    await pool.check()
    known_as, model = await pool.known_as(), await pool.get("lite")
    if known_as is None or model is None:
        raise InputError("name one model to evaluate, such as ollama:NAME or llamacpp:/path/model.gguf")
    context = context.model_copy(update={"enabled": True, "review": "all", "allowed_tools": ()})
    async with open_store(settings) as store:
        if again:
            await forget_evaluation(store, known_as)
        rows = [row async for row in _played(cases, pool, context, store, known_as)]
        found = Passport(
            version=version(),
            model=pool.describe("lite"),
            own_language=model.calls_tools,
            threshold=context.confidence_threshold,
            of=of,
            rows=tuple(rows),
            curves=curves_of(rows),
        )
        if len(rows) == of:
            await keep(store, known_as, found)
    if html:
        await asyncio.to_thread(lambda: rendering.save(html, page(found), force=True))
    if as_json:
        figures = {kind or "all": found.figures(kind)._asdict() for kind in ("", *load_cases().kinds)}
        fitting = {"review": found.review, "confidence_threshold": found.fitting and found.fitting[0]}
        more = {"figures": figures, "passed": found.passed._asdict(), "auroc": found.auroc, "settings": fitting}
        rendering.write_json({**found.model_dump(mode="json"), **more})
    else:
        _show(found)
    return 0


def chosen(kinds: Sequence[str], most: int | None) -> list[Case]:
    """Return at most `most` cases of each of these kinds; of all kinds if none is named.

    Raises:
        InputError: there is no such kind.
    """
    known = load_cases()
    if unknown := [one for one in kinds if one not in known.kinds]:
        raise InputError(f"there are no cases of the kind {unknown[0]!r}: the kinds are {', '.join(known.kinds)}")
    by_kind = [[one for one in known.cases if one.kind == kind] for kind in kinds or known.kinds]
    return [one for cases in by_kind for one in cases[:most]]


async def _played(
    cases: Sequence[Case], pool: ModelPool, context: RoutingContext, store: BaseStore, known_as: str
) -> AsyncIterator[Played]:
    out, deciders, kept = rendering.console(stderr=True), deciders_for(pool), await read_played(store, known_as)
    left = [case for case in cases if case.name not in kept]
    if len(left) < len(cases):
        out.print(Text(f"{len(cases) - len(left)} of {counted(len(cases), 'case')} are on record", style="dim"))
    for case in cases:
        if case.name in kept:
            yield kept[case.name]
    seconds, before = 0.0, ""
    for at, case in enumerate(left, 1):
        row = await play(case, deciders, context)
        if row.problem:
            await pool.check()
            if before:
                raise DecisionError(f"{row.problem} ({KEPT})")
        else:
            await keep(store, known_as, row)
        seconds, before = seconds + row.seconds, row.problem
        minutes = max(1, round((len(left) - at) * seconds / at / 60))
        progress = (
            f"{len(cases) - len(left) + at} of {len(cases)}, {case.name}: {'right' if row.right else 'not right'}"
        )
        out.print(
            Text(f"{progress}; about {minutes} min left".ljust(60), style="dim"), end="\r" if out.is_terminal else "\n"
        )
        yield row


def facts(found: Passport) -> Iterator[tuple[str, str]]:
    """Yield the facts of a passport beside its tables: label and text."""
    yield "reviews", found.believed
    tokens = f"{found.mean('evaluated'):,.0f} prompt tokens evaluated and {found.mean('written'):,.0f} written"
    yield "a turn", f"{found.mean('seconds'):.1f} s without the answer, {tokens}"
    form = "its own language: it is offered tools, and calls them" if found.own_language else "a form of JSON"
    yield "asked in", form
    yield "review", f"{found.review}: of the calls that only read, {found.reads}"
    cannot = f"{counted(len(found.answers), 'call')} cannot tell from where on 95 % are right"
    fitting = found.fitting and f"{found.fitting[0]:.2f}: from there on, {found.fitting[1]}"
    yield "confidence_threshold", fitting or cannot
    for kind, curve in found.curves.items():
        points = ", ".join(f"{point:.1f} counts {curve.at(point):.2f}" for point in POINTS)
        yield "curve", f"{kind}: {points}; from {counted(curve.answers, 'call')}, with {curve.adds:.0%} of what it adds"
    if not found.curves:
        yield "curve", "none: it takes 20 calls that were reviewed in one way, some of them right and some wrong"
    if unasked := sum(bool(row.problem) for row in found.rows):
        yield "not asked", f"{counted(unasked, 'case')}, counted as not right: the same command tries them again"
    if len(found.rows) < found.of:
        yield "kept", f"what came of these cases; a passport, with its curve for the gate, takes all {found.of}"


def page(found: Passport) -> str:
    """Return a passport as a self-contained HTML page. Blocking."""
    from jinja2 import ChoiceLoader, PackageLoader

    from packetgate.state.html.rendering import environment

    templates = environment(
        ChoiceLoader([PackageLoader("packetgate.connectors.terminal"), PackageLoader("packetgate.state.html")])
    )
    curves = {
        kind: " ".join(f"{100 * at / STEPS:.1f},{100 - 100 * curve.at(at / STEPS):.1f}" for at in range(STEPS + 1))
        for kind, curve in found.curves.items()
    }
    kinds = [(name, found.figures(kind)) for kind, name in {**load_cases().kinds, "": "all"}.items()]
    shown = templates.get_template("passport.html").render(
        found=found, facts=[*facts(found)], kinds=kinds, bins=reliability(found.answers), curves=curves
    )
    return f"{shown.strip()}\n"


def _show(found: Passport) -> None:
    out = rendering.console()
    rendering.say(f"{found.model}: {len(found.rows)} of {counted(found.of, 'case')}", "bold")
    table = rendering.table("", "cases", "right", "wrong call", "wrong, past the gate", right=(1, 2, 3, 4))
    for kind, name in {**load_cases().kinds, "": "all"}.items():
        figures = found.figures(kind)
        if figures.cases:
            table.add_row(name, *map(str, figures), style="" if kind else "bold")
    out.print(table)
    out.print(diagram(reliability(found.answers), "calls"))
    more = rendering.table("", "", wrapped=(1,), header=False)
    for what, how in facts(found):
        more.add_row(what, rendering.plain(how))
    out.print(more)
