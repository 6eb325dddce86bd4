"""Nothing runs below the threshold, and a review that fails closes the gate."""

import pytest
from langchain_core.messages import HumanMessage
from langgraph.types import interrupt
from support.graphs import run_once, session
from support.notebook import Notebook
from support.scripted_deciders import ScriptedReviewer, approving, call, calls, scripted, wanted

from packetgate.deciders.protocols import Review
from packetgate.gate.confidence import CallReview
from packetgate.state.errors import DecisionError
from packetgate.state.transitions import ToolExecutionStatus

READ_A = call("notebook.read_note", name="a")


@pytest.mark.parametrize(
    ("confidence", "approved", "threshold", "runs"),
    [
        (0.70, True, 0.7, True),
        (0.69, True, 0.7, False),
        (0.699999, True, 0.7, False),
        (1.0, True, 0.7, True),
        (1.0, False, 0.7, False),
        (0.95, False, 0.5, False),
        (0.5, False, 0.0, False),
        (0.95, False, 0.51, False),
        (0.9, True, 0.9, True),
        (0.89, True, 0.9, False),
        (0.0, True, 0.0, True),
        (0.2, True, 0.2, True),
    ],
)
async def test_the_threshold_is_inclusive(
    notebook: Notebook, confidence: float, approved: bool, threshold: float, runs: bool
):
    deciders = scripted(READ_A, reviewer=ScriptedReviewer(approving(confidence, approved=approved)))
    packet = await run_once(deciders, "Read a", notebook, confidence_threshold=threshold)
    status = ToolExecutionStatus.EXECUTED if runs else ToolExecutionStatus.SKIPPED
    assert (notebook.called, packet.routing.execution_status) == (["read_note"] if runs else [], status)


class _Raising:
    def __init__(self, error: Exception) -> None:
        self._error = error

    async def __call__(self, packet, catalogue, context) -> Review:
        raise self._error


class _Unusable:
    async def __call__(self, packet, catalogue, context) -> Review:
        return None  # type: ignore[return-value]


class _Interrupting:
    async def __call__(self, packet, catalogue, context) -> Review:
        interrupt({"ask": "a colleague"})
        raise AssertionError


@pytest.mark.parametrize(
    "error", [DecisionError("rubbish"), RuntimeError("boom"), ValueError("x"), TimeoutError("late"), KeyError("k")]
)
@pytest.mark.parametrize("on_low_confidence", ["ask", "skip"])
async def test_an_error_in_the_review_closes_the_gate(notebook: Notebook, error: Exception, on_low_confidence: str):
    deciders = scripted(READ_A, reviewer=_Raising(error))
    packet = await run_once(deciders, "Read a", notebook, on_low_confidence=on_low_confidence)
    (failed,) = packet.routing.calls
    assert notebook.calls == []
    assert (failed.review_confidence, failed.status) == (0.0, ToolExecutionStatus.SKIPPED)
    assert failed.selection_confidence == 0.8
    assert str(error) in packet.metrics.errors[0].message
    assert packet.metrics.errors[0].stage == "review_selection"
    assert packet.reasoning.evaluations[0].score == 0.0
    assert "failed" in packet.response.candidate


@pytest.mark.parametrize("stray", [[], ["nobody"]])
async def test_a_call_missing_from_the_review_counts_zero(notebook: Notebook, stray: list[str]):
    """The review covers the first of two calls, and in one case a call that does not exist."""

    class Half:
        async def __call__(self, packet, catalogue, context) -> Review:
            first = packet.routing.calls[0].call_id
            reviews = tuple(CallReview(call_id=one, approved=True, confidence=1.0) for one in [first, *stray])
            return Review(reviews=reviews, confidence=1.0, decided_by="model")

    both = calls(wanted("notebook.read_note", name="a"), wanted("notebook.read_note", name="b"))
    packet = await run_once(scripted(both, reviewer=Half()), "Read a and b", notebook)
    assert notebook.calls == [("read_note", {"name": "a"})]
    assert [one.review_confidence for one in packet.routing.calls] == [1.0, 0.0]
    assert [one.status for one in packet.routing.calls] == [ToolExecutionStatus.EXECUTED, ToolExecutionStatus.SKIPPED]
    assert [one.score for one in packet.reasoning.evaluations] == [1.0, 0.0]


async def test_an_unusable_review_closes_the_gate(notebook: Notebook):
    packet = await run_once(scripted(READ_A, reviewer=_Unusable()), "Read a", notebook)
    assert notebook.calls == []
    assert packet.routing.calls[0].review_confidence == 0.0


async def test_an_interrupt_of_the_reviewer_reaches_the_caller(notebook: Notebook):
    async with session(scripted(READ_A, reviewer=_Interrupting()), notebook) as talk:
        config = {"configurable": {"thread_id": "one"}}
        state = await talk.graph.ainvoke({"messages": [HumanMessage("Read a")]}, config, context=talk.context)
    assert [waiting.value for waiting in state["__interrupt__"]] == [{"ask": "a colleague"}]
    assert notebook.calls == []
