"""`packetgate calibrate`: fit the review's confidence to the user's own answers."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from packetgate.connectors import rendering
from packetgate.connectors.options import AsJson, settings_from
from packetgate.connectors.rendering import say, table, write_json
from packetgate.graph.journal import open_journal
from packetgate.graph.storage import open_store
from packetgate.graph.usage import answered_calls, read_turns
from packetgate.state.printing import counted
from packetgate.tools.evaluation.calibration import (
    MIN_ANSWERS,
    Bin,
    Calibration,
    brier_score,
    calibration_error,
    fit_curves,
    held_out_confidences,
    read_calibration,
    reliability,
    save_calibration,
)

BAR = 24
"""Width of a bar of the table, in characters."""


async def calibrate(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the result and change nothing.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Remove the last calibration.")] = False,
    as_json: AsJson = False,
) -> int:
    """Fit the review's confidence to your answers, and show how reliable it is.

    Curves are compared on answers that they were not fitted on, and stored if they predict these answers better.
    """
    settings = settings_from(local=True)
    async with open_store(settings) as store:
        if undo:
            has_curves = bool((await read_calibration(store)).curves)
            await save_calibration(store, Calibration())
            say("the review's own confidence applies again" if has_curves else "nothing to undo", "")
            return 0
        answers = answered_calls(await read_turns(open_journal(settings), settings.usage_days))
        calibration, held_out = fit_curves(answers), held_out_confidences(answers)
        reviewed = [(answer.score, answer.right) for answer in answers]
        better = bool(calibration.curves) and brier_score(held_out) < brier_score(reviewed)
        if stored := better and not dry_run:
            await save_calibration(store, calibration)
    if as_json:
        curves = {kind: curve.model_dump() for kind, curve in calibration.curves.items()}
        write_json({"curves": curves, "kept": stored, "reviewed": _figures(reviewed), "fitted": _figures(held_out)})
        return 0
    for title, decisions in (
        ("the review's own confidence", reviewed),
        ("fitted curves, on held-out answers", held_out if calibration.curves else []),
    ):
        if decisions:
            bins = reliability(decisions)
            say(f"{title}: average error {calibration_error(bins):.2f}", "bold")
            rendering.console().print(reliability_table(bins))
    if not calibration.curves:
        some = counted(len(answers), "answer")
        say(f"{some} so far: a curve needs {MIN_ANSWERS} about one kind of review, with right and wrong calls")
    elif not better:
        say("not stored: on held-out answers, the curves are not better than the review's own confidence")
    elif stored:
        say("stored: the curves apply from the next turn; to remove them, run `packetgate calibrate --undo`")
    else:
        say("not stored, because of --dry-run")
    return 0


def reliability_table(bins: Sequence[Bin], unit: str = "answers") -> Table:
    """Return a table of how often the calls of each range of confidence were right."""
    shown = table("confidence", unit, "right", "", right=(0, 1, 2))
    for item in bins:
        bar = ["█"] * round(item.right * BAR) + [" "] * (BAR - round(item.right * BAR))
        bar[min(int(item.confidence * BAR), BAR - 1)] = "|"
        where = f"{item.low:.1f} to {item.high:.1f}"
        shown.add_row(where, f"{item.count:,}", f"{item.right:.0%}", Text("".join(bar), style="cyan"))
    return shown


def _figures(decisions: Sequence[tuple[float, bool]]) -> dict[str, object]:
    bins = reliability(decisions)
    return {
        "answers": len(decisions),
        "calibration_error": round(calibration_error(bins), 4),
        "brier": round(brier_score(decisions), 4),
        "bins": [asdict(item) for item in bins],
    }
