"""The gate: at the threshold a call runs, below it is asked about, and a review that fails approves nothing."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from contract.doors import LIBRARY, ROUTERS, Setup, open_door
from contract.office import Office
from contract.rows import ASKS, NOTE_A, REFUSED, RUNS, WRITES, Row, check, each, find, request, through

FIND = request("Find order 17", find())
SKIPPING = {"on_low_confidence": "skip"}


def judged(
    promise: str,
    then: str,
    confidence: float | Exception,
    says: str = "",
    *,
    approved: bool = True,
    doors: Sequence[str] = (LIBRARY,),
    **settings: Any,
) -> Row:
    setup = {"confidence": confidence, "approved": approved}
    return Row(promise, FIND, then, says, doors=doors, settings=settings, setup=setup)


ROWS = [
    judged("a read at 0.7 runs", RUNS, 0.7, doors=ROUTERS),
    judged("a read at 0.69 is asked about", ASKS, 0.69, "0.69 is below 0.70", doors=ROUTERS),
    judged("a read just below the threshold is asked about", ASKS, 0.699999),
    judged("a read below the threshold is skipped if the settings say so", REFUSED, 0.69, **SKIPPING),
    judged("a call that the review does not approve is asked about", ASKS, 1.0, approved=False),
    judged("a call that the review does not approve is asked about at any threshold", ASKS, 0.9, approved=False,
           confidence_threshold=0.0),
    judged("another threshold lets a call run", RUNS, 0.5, confidence_threshold=0.5),
    judged("another threshold stops a call", ASKS, 0.89, confidence_threshold=0.9),
    judged("a review that fails approves nothing", ASKS, ValueError("boom"), doors=ROUTERS),
    judged("a review that is late approves nothing", ASKS, TimeoutError("late")),
    judged("a review that fails skips a call if the settings say so", REFUSED, ValueError("boom"), **SKIPPING),
    Row("a write at full confidence is asked about", NOTE_A, ASKS, doors=ROUTERS, settings=WRITES,
        setup={"confidence": 1.0}),
]  # fmt: skip


@through(*ROUTERS)
async def test_a_call_below_the_threshold_runs_once_it_is_approved(door: str, tmp_path: Path) -> None:
    office = Office()
    async with open_door(door, office, Setup(tmp_path, confidence=0.1)) as opened:
        await opened.turn([find()], words="Find order 17", answers=["approve"])
    assert office.made == [find()]


@each(ROWS)
async def test_a_review(row: Row, door: str, tmp_path: Path) -> None:
    await check(row, door, tmp_path)
