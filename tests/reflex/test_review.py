"""Review without a language model: confidence and objections."""

import pytest
from support.origins import origins
from support.packets import CONTEXT, FILES, done, packet

from packetgate.gate.confidence import CallReview
from packetgate.reflex.calls import select
from packetgate.reflex.plugin import review_by_reflex
from packetgate.reflex.scoring import scores_of
from packetgate.state.base import ConfidenceSource
from packetgate.state.routing import ToolCall
from packetgate.state.transitions import ToolExecutionStatus

THRESHOLD = CONTEXT.confidence_threshold


async def judge(request: str, call: ToolCall, step: int = 0) -> CallReview:
    (review,) = (await review_by_reflex(packet(request, call, step=step), FILES, CONTEXT)).reviews
    assert review.call_id == call.call_id
    return review


READ = done("files.read_file", ToolExecutionStatus.PENDING, path="a.txt").model_copy(
    update={"provenance": origins(path="user")}
)


@pytest.mark.parametrize(
    ("request_", "call"),
    [
        ("Read a.txt", READ),
        ("Delete a.txt", done("files.delete_file", path="a.txt")),
        ("Run `ls`", done("shell.run_command", command=["ls"])),
    ],
)
async def test_a_requested_call_is_approved(request_: str, call: ToolCall):
    review = await judge(request_, call)
    assert review.approved
    assert review.confidence >= THRESHOLD
    assert review.confidence_source is ConfidenceSource.CALIBRATED


async def test_a_call_is_reviewed_for_its_step():
    call = done("files.delete_file", path="a.txt")
    assert (await judge("Read b.txt then delete a.txt", call, step=1)).confidence >= THRESHOLD
    assert (await judge("Read b.txt then delete a.txt", call, step=0)).confidence < THRESHOLD


@pytest.mark.parametrize(
    ("request_", "call", "most", "says"),
    [
        ("Read a.txt", done("files.gone", path="a.txt"), 0.0, "the tool no longer exists"),
        ("Read a.txt", done("files.delete_file", path="a.txt"), 0.3, "does not ask for write access"),
        ("Don't delete a.txt", done("files.delete_file", path="a.txt"), 0.3, "does not ask for write access"),
        ("Delete a.txt if it is empty", done("files.delete_file", path="a.txt"), 0.5, "`if`"),
        ("Delete a.txt", done("shell.run_command", command=["rm"]), 0.3, "does not ask for execute access"),
    ],
)
async def test_calls_that_were_not_requested_are_not_approved(request_: str, call: ToolCall, most: float, says: str):
    review = await judge(request_, call)
    assert not review.approved
    assert review.confidence <= most
    assert says in review.reasoning


@pytest.mark.parametrize(
    ("origin", "told"), [("nobody", "the model"), ("text:files.read_file", "the text that files.read_file returned")]
)
async def test_arguments_from_other_sources_are_an_objection(origin: str, told: str):
    review = await judge("Read a.txt", READ.model_copy(update={"provenance": origins(path=origin)}))
    assert not review.approved
    assert review.confidence <= 0.4
    assert f"arguments that are not from your words: `path` (from {told})" in review.reasoning


@pytest.mark.parametrize(
    ("request_", "rival"),
    [
        ("Read b.txt", 'files.read_file with {"path":"b.txt"}'),
        ("Delete a.txt", 'files.delete_file with {"path":"a.txt"}'),
        ("Read a.txt", None),
    ],
)
def test_another_call_of_reflex_is_named(request_: str, rival: str | None):
    given = packet(request_, READ)
    (score,) = scores_of([READ], given, FILES, select(given, FILES))
    named = [why.removeprefix("the rule-based decider would call ") for why in score.reasons if "would call" in why]
    assert named == ([rival] if rival else [])
