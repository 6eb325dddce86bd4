"""A call at the threshold runs, a call below it needs approval, and a failed review approves nothing."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from contract.doors import LIBRARY, MIDDLEWARE, PROXY, ROUTERS, Setup, open_door
from contract.rows import ASKS, NOTE_A, REFUSED, RUNS, WRITES, Row, check, each, fetch, find, request, through

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

OF_AGENTS = (MIDDLEWARE, PROXY)
"""Doors whose calls another agent selects. Here, the judge may doubt the first call of a request."""
PAGE = "Fetch the page https://a.example/orders; do not fetch https://b.example/"
WRONG, OTHER = fetch("https://b.example/"), fetch("https://a.example/orders")
WRONG_PAGE = request(PAGE, WRONG)
DELETE_4 = request("Delete order 17 of customer 4", ("delete_order", {"number": 4}))
DELETING = 'policy.rules = [{effect = "allow", tool = "SERVER.delete_order"}]'


def doubted(promise: str, what: Any, then: str, says: str = "", **more: Any) -> Row:
    return Row(promise, what, then, says, **{"doors": OF_AGENTS, **more})


DOUBTED = [
    doubted("a first read outside that the words contradict is asked about", WRONG_PAGE, ASKS, "is below 0.70"),
    doubted("a first read outside that the words confirm runs", request("Fetch https://a.example/orders", OTHER), RUNS),
    doubted("a later read is not doubted", request(PAGE, find(), WRONG), RUNS),
    doubted("a new request has a first call", [request("Find order 17", find()), WRONG_PAGE], ASKS, "is below 0.70",
            doors=(MIDDLEWARE,)),
    doubted("a context that was set after a result is not the user's words", [request("Find order 17", find()),
            request("Delete order 17 of customer 4", ("delete_order", {"number": 4}))], ASKS, does_not_say="below",
            doors=(PROXY,), settings=WRITES),
    doubted("a read inside is not doubted", request("Find the order with number 17, not the 3 others", find(3)), RUNS),
    doubted("a change with a value from elsewhere has no number", request("Delete an order", ("delete_order",
            {"number": 4})), ASKS, does_not_say="below", settings=WRITES),
    doubted("at another threshold a doubted read runs", WRONG_PAGE, RUNS, settings={"confidence_threshold": 0.2}),
    doubted("at a threshold of 0 nothing is doubted", DELETE_4, ASKS, does_not_say="below",
            settings={**WRITES, "confidence_threshold": 0.0}),
    doubted("a doubted read is skipped if the settings say so", WRONG_PAGE, REFUSED, settings=SKIPPING),
    doubted("the question about a change shows the doubt", DELETE_4, ASKS, "is below 0.70; write tools need approval",
            settings=WRITES),
    doubted("a change that the words confirm has no number", NOTE_A, ASKS, does_not_say="confidence", settings=WRITES),
    doubted("a rule that allows a change is not doubted", DELETE_4, RUNS, settings=WRITES, policy=DELETING),
]  # fmt: skip


@through(*ROUTERS)
async def test_a_call_below_the_threshold_runs_once_it_is_approved(door: str, tmp_path: Path) -> None:
    async with open_door(door, Setup(tmp_path, confidence=0.1)) as opened:
        await opened.turn([find()], words="Find order 17", answers=["approve"])
    assert opened.office.made == [find()]


@through(*OF_AGENTS)
async def test_a_doubted_call_runs_once_it_is_approved(door: str, tmp_path: Path) -> None:
    async with open_door(door, Setup(tmp_path)) as opened:
        await opened.turn([WRONG], words=PAGE, answers=["approve"])
    assert opened.office.made == [WRONG]


@each([*ROWS, *DOUBTED])
async def test_the_threshold_decides_whether_a_call_runs(row: Row, door: str, tmp_path: Path) -> None:
    await check(row, door, tmp_path)
