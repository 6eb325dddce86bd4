"""`packetgate calibrate`: fit the review's confidence to the user's own answers."""

from typing import Annotated

import typer

from packetgate.connectors.options import settings_from
from packetgate.connectors.rendering import say
from packetgate.graph.journal import open_journal
from packetgate.graph.storage import open_store
from packetgate.graph.usage import answered_calls
from packetgate.lab.fitting import (
    MIN_ANSWERS,
    brier_score,
    calibration_error,
    fit_curves,
    held_out_confidences,
    reliability,
)
from packetgate.state.printing import counted
from packetgate.tools.calibration import Calibration, read_calibration, save_calibration


async def calibrate(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the result and change nothing.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Remove the last calibration.")] = False,
) -> int:
    """Fit the review's confidence to your answers, and show how reliable it is.

    Curves are compared on answers that they were not fitted on, and stored if they predict these answers better.
    """
    settings = settings_from()
    async with open_store(settings) as store:
        if undo:
            has_curves = bool((await read_calibration(store)).curves)
            await save_calibration(store, Calibration())
            say("the review's own confidence applies again" if has_curves else "nothing to undo", "")
            return 0
        answers = await answered_calls(open_journal(settings), settings.usage_days)
        calibration, held_out = fit_curves(answers), held_out_confidences(answers)
        reviewed = [(answer.score, answer.right) for answer in answers]
        is_better = bool(calibration.curves) and brier_score(held_out) < brier_score(reviewed)
        if is_better and not dry_run:
            await save_calibration(store, calibration)
    for title, decisions in (
        ("the review's own confidence", reviewed),
        ("fitted curves, on held-out answers", held_out if calibration.curves else []),
    ):
        if decisions:
            error = calibration_error(reliability(decisions))
            say(f"{title}: average error {error:.2f} of {counted(len(decisions), 'answer')}", "")
    if not calibration.curves:
        some = counted(len(answers), "answer")
        say(f"{some} so far: a curve needs {MIN_ANSWERS} about one kind of review, with right and wrong calls")
    elif not is_better:
        say("not stored: on held-out answers, the curves are not better than the review's own confidence")
    elif dry_run:
        say("not stored, because of --dry-run")
    else:
        say("stored: the curves apply from the next turn; to remove them, run `packetgate calibrate --undo`")
    return 0
