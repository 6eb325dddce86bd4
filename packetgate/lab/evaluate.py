"""`packetgate evaluate`: run the cases of the evaluation on a model, and print and store its passport."""

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Annotated

import typer
from langgraph.store.base import BaseStore
from rich.text import Text

from packetgate.connectors import rendering
from packetgate.connectors.options import AsJson, run_settings_from, settings_from
from packetgate.graph.composition import deciders_for, model_pool
from packetgate.graph.storage import open_store
from packetgate.lab.cases import Case, load_cases
from packetgate.lab.passport import (
    CaseResult,
    Passport,
    fit_case_curves,
    forget_evaluation,
    read_case_results,
    save_case_result,
    save_passport,
)
from packetgate.lab.run_case import run_case
from packetgate.models.pool import ModelPool
from packetgate.state.context import RoutingContext
from packetgate.state.errors import DecisionError, InputError
from packetgate.state.printing import counted

POINTS = (0.3, 0.5, 0.7, 0.9)
"""Confidences at which a curve is printed."""


async def evaluate(
    model: Annotated[
        str | None, typer.Argument(help="ollama:NAME, openai:NAME, llamacpp:FILE, ...; by default the one in use.")
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Delete the previous results and start over.")] = False,
    kinds: Annotated[
        list[str] | None, typer.Option("--kinds", help="Only cases of this kind, such as acts; can be repeated.")
    ] = None,
    limit: Annotated[int | None, typer.Option("--cases", min=1, help="Maximum number of cases of each kind.")] = None,
    as_json: AsJson = False,
) -> int:
    """Measure a model on eighty cases: its strengths, its confidence and suitable settings.

    No tool runs. Each result is stored, so that the same command continues an interrupted evaluation. After all cases,
    the gate adjusts this model's confidence by the results.
    """
    settings, suite = settings_from(), load_cases()
    if unknown := [kind for kind in kinds or () if kind not in suite.kinds]:
        raise InputError(f"there are no cases of the kind {unknown[0]!r}: the kinds are {', '.join(suite.kinds)}")
    by_kind = [[case for case in suite.cases if case.kind == kind] for kind in kinds or suite.kinds]
    cases = [case for group in by_kind for case in group[:limit]]
    context = run_settings_from(settings).context
    context = context.model_copy(update={"enabled": True, "review": "all", "allowed_tools": ()})
    used = settings.model_copy(update={"lite": model, "prime": "reflex"} if model else {})
    pool = model_pool(used)
    await pool.check()
    model_digest, loaded = await pool.model_digest(), await pool.get("lite")
    if model_digest is None or loaded is None:
        raise InputError(_not_evaluable(pool, {used.lite, used.prime} - {"reflex"}))
    async with open_store(settings) as store:
        if again:
            await forget_evaluation(store, model_digest)
        rows = [row async for row in _play_cases(cases, pool, context, store, model_digest)]
        passport = Passport(
            model=pool.describe("lite"),
            own_language=loaded.uses_tool_calling,
            threshold=context.confidence_threshold,
            of=len(suite.cases),
            rows=tuple(rows),
            curves=fit_case_curves(rows),
        )
        if len(rows) == passport.of:
            await save_passport(store, model_digest, passport)
    figures = {kind: passport.count_cases(kind) for kind in ("", *suite.kinds)}
    if as_json:
        counts = {kind or "all": count._asdict() for kind, count in figures.items()}
        threshold = passport.recommended_threshold and passport.recommended_threshold[0]
        recommended = {"review": passport.review, "confidence_threshold": threshold}
        more = {"figures": counts, "passed": passport.passed._asdict(), "auroc": passport.auroc}
        rendering.write_json({**dict(passport), **more, "settings": recommended})
        return 0
    out = rendering.console()
    rendering.say(f"{passport.model}: {len(passport.rows)} of {counted(passport.of, 'case')}", "bold")
    counted_kinds = [(name, *figures[kind]) for kind, name in {**suite.kinds, "": "all"}.items() if figures[kind].cases]
    headings = ("", "cases", "right", "wrong call", "wrong, past the gate")
    out.print(rendering.table(headings, counted_kinds, right=(1, 2, 3, 4)))
    out.print(rendering.table(("", ""), _fact_rows(passport)))
    return 0


def _not_evaluable(pool: ModelPool, models: set[str]) -> str:
    """Return why these are not one model with the same options in both roles."""
    lite, prime = pool.given["lite"], pool.given["prime"]
    differing = [
        option.where
        for options, others in ((lite, prime), (prime, lite))
        for name, option in options.items()
        if name not in others or others[name].value != option.value
    ]
    if len(models) == 1 and differing:
        places = ", ".join(differing)
        return f"{models.pop()} has other options as lite than as prime: set for both roles, or for none: {places}"
    return "name one model to evaluate, such as ollama:NAME or llamacpp:/path/model.gguf"


async def _play_cases(
    cases: Sequence[Case], pool: ModelPool, context: RoutingContext, store: BaseStore, model_digest: str
) -> AsyncIterator[CaseResult]:
    out, deciders = rendering.console(stderr=True), deciders_for(pool, fallback=True)
    stored = await read_case_results(store, model_digest)
    done = [case for case in cases if case.name in stored]
    if done:
        out.print(f"{len(done)} of {counted(len(cases), 'case')} are on record", style="dim")
    for case in done:
        yield stored[case.name]
    problem = ""
    for at, case in enumerate([case for case in cases if case.name not in stored], len(done) + 1):
        row = await run_case(case, deciders, context)
        if row.problem:
            await pool.check()
            if problem:
                raise DecisionError(f"{row.problem} (finished cases are stored: run the same command to continue)")
        else:
            await save_case_result(store, model_digest, row)
        problem = row.problem
        line = f"{at} of {len(cases)}, {case.name}: {'right' if row.right else 'not right'}"
        out.print(Text(line.ljust(60), style="dim"), end="\r" if out.is_terminal else "\n")
        yield row


def _fact_rows(passport: Passport) -> Iterator[tuple[str, str]]:
    yield "reviews", passport.review_reliability
    tokens = f"{passport.mean('evaluated'):,.0f} prompt tokens evaluated and {passport.mean('written'):,.0f} written"
    yield "a turn", f"{passport.mean('seconds'):.1f} s without the answer, {tokens}"
    yield "asked in", "its own tool-calling form" if passport.own_language else "words that describe the tools"
    yield "review", f"{passport.review}: of the calls that only read, {passport.reads}"
    calls = counted(len(passport.answers), "call")
    threshold = f"{calls} are too few to find a threshold above which 95 % are right"
    if passport.recommended_threshold:
        threshold = "{:.2f}: above it, {}".format(*passport.recommended_threshold)
    yield "confidence_threshold", threshold
    for kind, curve in passport.curves.items():
        points = ", ".join(f"{point:.1f} counts {curve.at(point):.2f}" for point in POINTS)
        yield "curve", f"{kind}: {points}; from {counted(curve.answers, 'call')}, raises applied at {curve.adds:.0%}"
    if not passport.curves:
        yield "curve", "none: a curve needs 20 calls with the same kind of review, right and wrong"
    if unasked := sum(bool(row.problem) for row in passport.rows):
        yield "not asked", f"{counted(unasked, 'case')}, counted as not right; the same command tries them again"
    if len(passport.rows) < passport.of:
        yield "stored", f"only these cases; a passport, with its curve for the gate, needs all {passport.of}"
