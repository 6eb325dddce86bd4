"""`packetgate calibrate`: fit the review's confidence to the user's own answers."""

from collections.abc import Sequence
from dataclasses import asdict

from rich.table import Table
from rich.text import Text

from packetgate.connectors import rendering
from packetgate.connectors.rendering import say, table, write_json
from packetgate.graph.settings import Settings
from packetgate.graph.storage import open_store
from packetgate.state.printing import counted
from packetgate.tools.usage.calibration import (
    FEWEST,
    Bin,
    answered,
    calibration_error,
    fitted,
    left_out,
    loss,
    read_history,
    reliability,
    save_history,
)
from packetgate.tools.usage.store import read_usage

BAR = 24
"""Width of a bar of the diagram, in characters."""

Decisions = Sequence[tuple[float, bool]]


async def calibrate(settings: Settings, *, keep: bool, as_json: bool) -> int:
    """Fit curves to the user's answers, print them beside the review's own confidence, and store them if better.

    Curves are compared on answers that they were not fitted on. With `keep` false nothing is changed.
    """
    async with open_store(settings) as store:
        answers, history = answered((await read_usage(store)).records), await read_history(store)
        found, held_out = fitted(answers), left_out(answers)
        reviewed = [(answer.score, answer.right) for answer in answers]
        better = bool(found.curves) and loss(held_out) < loss(reviewed)
        kept = keep and better
        if kept:
            await save_history(store, history.with_next(found))
    if as_json:
        curves = {kind: curve.model_dump() for kind, curve in found.curves.items()}
        write_json({"curves": curves, "kept": kept, "reviewed": _figures(reviewed), "fitted": _figures(held_out)})
        return 0
    for title, decisions in (("as the review said", reviewed), ("as fitted, on held-out answers", held_out)):
        if decisions and (found.curves or decisions is reviewed):
            bins = reliability(decisions)
            say(f"{title}: off by {calibration_error(bins):.2f} on average", "bold")
            rendering.console().print(diagram(bins))
    if not found.curves:
        say(f"{counted(len(answers), 'answer')} so far: a curve needs {FEWEST} of one kind of review, right and wrong")
    elif not better:
        say("not changed: on held-out answers, the curve is not better than the review's own confidence")
    else:
        say("stored: it applies from the next turn; `packetgate calibrate --undo` removes it" if kept else "not stored")
    return 0


async def undo(settings: Settings) -> int:
    """Remove the last calibration, so that the one before it applies again."""
    async with open_store(settings) as store:
        history = await read_history(store)
        if history.fitted:
            await save_history(store, history.undone())
    before = history.undone().fitted
    restored = f"calibration of {before[-1].at.astimezone():%Y-%m-%d %H:%M}" if before else "review's own confidence"
    say(f"the {restored} applies again" if history.fitted else "nothing to undo", "")
    return 0


def diagram(bins: Sequence[Bin], unit: str = "answers") -> Table:
    """Return a table of how often each range of confidence was right."""
    shown = table("confidence", unit, "right", "", right=(0, 1, 2))
    for one in bins:
        bar = ["█"] * round(one.right * BAR) + [" "] * (BAR - round(one.right * BAR))
        bar[min(int(one.confidence * BAR), BAR - 1)] = "|"
        where = f"{one.low:.1f} to {one.high:.1f}"
        shown.add_row(where, f"{one.count:,}", f"{one.right:.0%}", Text("".join(bar), style="cyan"))
    return shown


def _figures(decisions: Decisions) -> dict[str, object]:
    bins = reliability(decisions)
    return {
        "answers": len(decisions),
        "calibration_error": round(calibration_error(bins), 4),
        "brier": round(loss(decisions), 4),
        "bins": [asdict(one) for one in bins],
    }
