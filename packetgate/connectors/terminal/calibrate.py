"""`packetgate calibrate`: how far the review's confidence can be believed, by the user's own answers."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import get_args

from rich.table import Table
from rich.text import Text

from packetgate.connectors import rendering
from packetgate.connectors.rendering import say, table, write_json
from packetgate.graph.settings import Settings
from packetgate.graph.storage import open_store
from packetgate.state.base import now
from packetgate.state.printing import counted
from packetgate.tools.catalogue.preferences import load_preferences
from packetgate.tools.usage.calibration import (
    BINS,
    FEWEST,
    Answered,
    Bin,
    End,
    Replayed,
    answered,
    calibration_error,
    fitted,
    left_out,
    loss,
    read_history,
    reliability,
    replayed,
    save_history,
)
from packetgate.tools.usage.store import read_usage

BAR = 24
"""Width of a bar of the diagram, in characters."""

Decisions = Sequence[tuple[float, bool]]


async def calibrate(settings: Settings, *, keep: bool, as_json: bool) -> int:
    """Fit the confidence to the user's answers, show it beside the review's own, and keep it if it is better.

    New curves are judged by answers that they were not fitted on. With `keep` false nothing is changed.
    """
    async with open_store(settings) as store:
        answers, history = answered((await read_usage(store)).records), await read_history(store)
        found, held_out = fitted(answers), left_out(answers)
        reviewed = [(one.score, one.right) for one in answers]
        better = bool(found.curves) and loss(held_out) < loss(reviewed)
        kept = keep and better
        if kept:
            await save_history(store, history.with_next(found))
    if as_json:
        curves = {kind: curve.model_dump() for kind, curve in found.curves.items()}
        write_json({"curves": curves, "kept": kept, "said": _figures(reviewed), "fitted": _figures(held_out)})
        return 0
    for title, decisions in (("as the review said", reviewed), ("as fitted, on answers left out", held_out)):
        if decisions and (found.curves or decisions is reviewed):
            bins = reliability(decisions)
            say(f"{title}: off by {calibration_error(bins):.2f} on average", "bold")
            rendering.console().print(diagram(bins))
    say(_outcome(answers, found.curves, better=better, kept=kept))
    return 0


async def undo(settings: Settings) -> int:
    """Undo the last calibration, so that the one before it applies again."""
    async with open_store(settings) as store:
        history = await read_history(store)
        if history.fitted:
            await save_history(store, history.undone())
    before = history.undone().fitted
    back = f"back to that of {before[-1].at.astimezone():%Y-%m-%d %H:%M}" if before else "as the review says again"
    say(back if history.fitted else "nothing to undo: nothing was calibrated", "")
    return 0


async def replay(settings: Settings, least: float, policy: Path | None, days: int, *, as_json: bool) -> int:
    """Show what a threshold of `least`, or the rules of another file, would have asked about in the last `days`."""
    rules = load_preferences(policy or settings.preferences_path).policy.rules
    since = now() - timedelta(days=days)
    async with open_store(settings) as store:
        records = [record for record in (await read_usage(store)).records if record.at >= since]
        found = replayed(records, (await read_history(store)).current, least, rules)
    if as_json:
        write_json({"days": days, "threshold": least, **asdict(found)})
    else:
        _show_replay(found, least, days)
    return 0


def _outcome(answers: Sequence[Answered], curves: object, *, better: bool, kept: bool) -> str:
    if not curves:
        return (
            f"{counted(len(answers), 'answer')} so far: a curve needs {FEWEST} of one kind of review, both approved"
            " and not; every question you answer is one"
        )
    if not better:
        return "left as it was: on answers it was not fitted on, a curve is no truer than what the review says"
    return "kept: it counts from the next turn on; `packetgate calibrate --undo` takes it back" if kept else "not kept"


def _figures(decisions: Decisions) -> dict[str, object]:
    bins = reliability(decisions)
    return {
        "answers": len(decisions),
        "calibration_error": round(calibration_error(bins), 4),
        "brier": round(loss(decisions), 4),
        "bins": [asdict(one) for one in bins],
    }


def diagram(bins: Sequence[Bin], of: str = "answers") -> Table:
    """Return a table of how often each range of confidence was right."""
    shown = table("confidence", of, "right", "", right=(0, 1, 2))
    for one in bins:
        bar = ["█"] * round(one.right * BAR) + [" "] * (BAR - round(one.right * BAR))
        bar[min(int(one.confidence * BAR), BAR - 1)] = "|"
        where = f"{one.low:.1f} to {one.low + 1 / BINS:.1f}"
        shown.add_row(where, f"{one.count:,}", f"{one.right:.0%}", Text("".join(bar), style="cyan"))
    return shown


def _show_replay(found: Replayed, threshold: float, days: int) -> None:
    shown = table("", "then", f"at {threshold:.2f}", right=(1, 2))
    for end in get_args(End):
        shown.add_row(end, f"{found.then.get(end, 0):,}", f"{found.now.get(end, 0):,}")
    rendering.console().print(shown)
    lines = [
        f"{counted(found.calls, 'call')} of {counted(found.turns, 'turn')} in the last {counted(days, 'day')}",
        f"denied or changed by you, and run unasked: {found.denied_and_run:,}",
        f"approved by you, and asked about still: {found.approved_and_asked:,}",
    ]
    if found.by_arguments:
        lines.append(f"rules that speak of arguments are left aside for {counted(found.by_arguments, 'call')}")
    say("; ".join(lines))
