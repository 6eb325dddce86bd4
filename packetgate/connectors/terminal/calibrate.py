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
    MIN_ANSWERS,
    Bin,
    Calibration,
    answered_calls,
    brier_score,
    calibration_error,
    fit_curves,
    held_out_confidences,
    read_calibration,
    reliability,
    save_calibration,
)
from packetgate.tools.usage.store import read_usage

BAR = 24
"""Width of a bar of the diagram, in characters."""

_Decisions = Sequence[tuple[float, bool]]


async def run_calibrate(settings: Settings, *, keep: bool, as_json: bool) -> int:
    """Fit curves to the user's answers, and print them beside the review's own confidence.

    Curves are compared on answers that they were not fitted on, and stored if they predict these answers better. If
    `keep` is false, nothing is stored.
    """
    async with open_store(settings) as store:
        answers = answered_calls((await read_usage(store)).records)
        calibration, held_out_answers = fit_curves(answers), held_out_confidences(answers)
        reviewed = [(answer.score, answer.right) for answer in answers]
        better = bool(calibration.curves) and brier_score(held_out_answers) < brier_score(reviewed)
        stored = keep and better
        if stored:
            await save_calibration(store, calibration)
    if as_json:
        curves = {kind: curve.model_dump() for kind, curve in calibration.curves.items()}
        write_json(
            {"curves": curves, "kept": stored, "reviewed": _figures(reviewed), "fitted": _figures(held_out_answers)}
        )
        return 0
    for title, decisions in (
        ("the review's own confidence", reviewed),
        ("fitted curves, on held-out answers", held_out_answers),
    ):
        if decisions and (calibration.curves or decisions is reviewed):
            bins = reliability(decisions)
            say(f"{title}: average error {calibration_error(bins):.2f}", "bold")
            rendering.console().print(diagram(bins))
    if not calibration.curves:
        say(f"{counted(len(answers), 'answer')} so far: a curve needs {MIN_ANSWERS} of one kind, right and wrong")
    elif not better:
        say("not changed: on held-out answers, the curve is not better than the review's own confidence")
    else:
        say(
            "stored: it applies from the next turn; `packetgate calibrate --undo` removes it"
            if stored
            else "not stored"
        )
    return 0


async def undo(settings: Settings) -> int:
    """Remove the calibration, so that the review's own confidence applies again."""
    async with open_store(settings) as store:
        has_curves = bool((await read_calibration(store)).curves)
        await save_calibration(store, Calibration())
    say("the review's own confidence applies again" if has_curves else "nothing to undo", "")
    return 0


def diagram(bins: Sequence[Bin], unit: str = "answers") -> Table:
    """Return a table of how often each range of confidence was right."""
    shown = table("confidence", unit, "right", "", right=(0, 1, 2))
    for item in bins:
        bar = ["█"] * round(item.right * BAR) + [" "] * (BAR - round(item.right * BAR))
        bar[min(int(item.confidence * BAR), BAR - 1)] = "|"
        where = f"{item.low:.1f} to {item.high:.1f}"
        shown.add_row(where, f"{item.count:,}", f"{item.right:.0%}", Text("".join(bar), style="cyan"))
    return shown


def _figures(decisions: _Decisions) -> dict[str, object]:
    bins = reliability(decisions)
    return {
        "answers": len(decisions),
        "calibration_error": round(calibration_error(bins), 4),
        "brier": round(brier_score(decisions), 4),
        "bins": [asdict(item) for item in bins],
    }
