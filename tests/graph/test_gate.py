"""A review that fails, or leaves out a call, closes the gate, and is recorded."""

import pytest
from langchain_core.messages import HumanMessage
from langgraph.types import interrupt
from support.graphs import run_once, session
from support.notebook import Notebook
from support.scripted_deciders import call, calls, scripted, wanted

from packetgate.deciders.protocols import Review
from packetgate.gate.confidence import CallReview
from packetgate.state.errors import DecisionError
from packetgate.state.transitions import ToolExecutionStatus

READ_A = call("notebook.read_note", name="a")


class _Raising:
    def __init__(self, error: Exception) -> None:
        self._error = error

    async def __call__(self, packet, catalogue, context) -> Review:
        raise self._error


class _Interrupting:
    async def __call__(self, packet, catalogue, context) -> Review:
        interrupt({"ask": "a colleague"})
        raise AssertionError


@pytest.mark.parametrize("error", [DecisionError("rubbish"), KeyError("k")])
async def test_an_error_in_the_review_is_recorded(notebook: Notebook, error: Exception):
    packet = await run_once(scripted(READ_A, reviewer=_Raising(error)), "Read a", notebook)
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


async def test_an_interrupt_of_the_reviewer_reaches_the_caller(notebook: Notebook):
    async with session(scripted(READ_A, reviewer=_Interrupting()), notebook) as talk:
        config = {"configurable": {"thread_id": "one"}}
        state = await talk.graph.ainvoke({"messages": [HumanMessage("Read a")]}, config, context=talk.context)
    assert [waiting.value for waiting in state["__interrupt__"]] == [{"ask": "a colleague"}]
    assert notebook.calls == []
