"""Each LangChain decision model can review, and the gate's model can serve as a decision model."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AutoModeMiddleware
from langchain_core.decisions import (
    BaseDecisionModel,
    Box,
    Choice,
    ClassifierRequest,
    ClassifierResponse,
    Noul,
    NoulCriteria,
    Question,
    Score,
    State,
)
from langchain_core.language_models import FakeListChatModel
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolCall
from support.prompts import written_call

from packetgate.decisions import GateDecisionModel
from packetgate.router import create_router
from packetgate.state.errors import RequestError
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.toolsets.servers.functions import reads

EXECUTED, WAITS = ToolExecutionStatus.EXECUTED, ToolExecutionStatus.AWAITING_CONFIDENCE


@reads
def list_late_orders() -> list[str]:
    """List the orders that are late."""
    return ["A-17", "B-4"]


class FixedModel(BaseDecisionModel):
    """A user-defined decision model."""

    model: str = "fixed"
    answer: Any = None

    @property
    def _provider(self) -> str:
        return "mine"

    def _classify(self, state: State, questions: dict[str, Question]) -> ClassifierResponse:
        assert "late" in str(state)
        if isinstance(self.answer, Exception):
            raise self.answer
        if not isinstance(self.answer, float):
            return self.answer
        return ClassifierResponse.model_validate(
            {"model": "fixed", "answers": {name: {"type": "noul", "noul": self.answer} for name in questions}}
        )


@dataclass(frozen=True)
class Case:
    """The model's answer about a read, and the expected outcome."""

    answer: Any
    confidence: float
    status: ToolExecutionStatus = WAITS
    message: str = ""


def unchecked(noul: float) -> ClassifierResponse:
    answer: Any = {"call_1": type("Answer", (), {"type": "noul", "noul": noul})}
    return ClassifierResponse.model_construct(model="fixed", answers=answer)


@pytest.mark.reflex
@pytest.mark.parametrize(
    "case",
    [
        Case(0.9, 0.9, EXECUTED),
        Case(0.69, 0.69),
        Case(0.2, 0.5),
        Case(ClassifierResponse(model="fixed", answers={}), 0.0, message="returned no probability for any call"),
        Case(unchecked(2.0), 0.0, message="FixedModel raised ValidationError"),
        Case("yes", 0.0, message="FixedModel raised AttributeError"),
        Case(ZeroDivisionError("no orders"), 0.0, message="the review failed: ZeroDivisionError: no orders"),
        Case(KeyError("late"), 0.0, message="FixedModel raised KeyError: 'late'"),
    ],
    ids=lambda case: case.message or str(case.answer),
)
def test_any_decision_model_can_review(case: Case):
    with create_router(tools=[list_late_orders], prime=FixedModel(answer=case.answer)) as router:
        turn = router.invoke("Which orders are late?")
    (made,) = turn.calls
    assert (made.status, made.review_confidence) == (case.status, pytest.approx(case.confidence))
    assert case.message in "".join(error.message for error in turn.packet.metrics.errors)
    assert bool(case.message) == bool(turn.packet.metrics.errors)


def test_a_chat_model_reviews_and_answers():
    chat = FakeListChatModel(responses=[written_call("functions.list_late_orders"), "Two are late."])
    with create_router(chat, [list_late_orders], prime=FixedModel(answer=0.8)) as router:
        turn = router.invoke("Which orders are late?")
    assert turn.answer == 'Two are late.\n\n```\n["A-17", "B-4"]\n```'
    assert turn.calls[0].review_reasoning == "fixed: probability that the call should run: 0.80"


QUESTIONS: dict[str, Question] = {
    "wet": Noul(instructions="Is it wet?", criteria=NoulCriteria(true="there is water")),
    "which": Choice(instructions={"ask": "Which?"}, criteria={"rain": "water falls", "sun": None}),
    "how": Score(instructions="How wet?", criteria=["dry", "damp", "soaked"]),
}


def test_the_gates_model_is_a_decision_model(tiny_gguf: Path):
    gate = GateDecisionModel(model=f"llamacpp:{tiny_gguf}")
    asked = ClassifierRequest(state="It rains.", questions=QUESTIONS)
    found, same = gate.invoke(asked), asyncio.run(gate.ainvoke(asked))
    assert same.nouls["wet"].noul == pytest.approx(found.nouls["wet"].noul, rel=1e-2)
    assert 0 < found.nouls["wet"].noul < 1
    which, how = found.choices["which"], found.scores["how"]
    assert which.choice == max(which.probabilities, key=which.probabilities.__getitem__)
    for probabilities in (which.probabilities, how.probabilities):
        assert sum(probabilities.values()) == pytest.approx(1)
    assert how.score == pytest.approx(how.probabilities[1] + 2 * how.probabilities[2])
    assert how.legend == {0: "dry", 1: "damp", 2: "soaked"}
    assert found.usage is not None
    assert found.usage["input_tokens"] > found.usage["input_token_details"]["cache_read"] > 0
    picture: Any = {"type": "image", "base64": "AAAA", "mime_type": "image/png"}
    many = Choice(instructions="Which?", criteria={str(number): None for number in range(63)})
    bad: list[tuple[Any, Question, str]] = [
        ({"messages": [HumanMessage([picture])]}, QUESTIONS["wet"], "image"),
        ({"seen": picture}, QUESTIONS["wet"], "image"),
        ({"when": object()}, QUESTIONS["wet"], "object"),
        ("long " * 50_000, QUESTIONS["wet"], "exceed the context"),
        ("It rains.", Box(instructions="the umbrella"), "box"),
        ("It rains.", many, "at most 62"),
    ]
    for state, question, message in bad:
        with pytest.raises(RequestError, match=message):
            gate.invoke({"state": state, "questions": {"one": question}})


def test_the_gates_model_guards_a_langchain_agent(tiny_gguf: Path):
    gate = GateDecisionModel(model=f"llamacpp:{tiny_gguf}")
    wanted = AIMessage("", tool_calls=[ToolCall(name="list_late_orders", args={}, id="one")])
    chat = type("Chat", (GenericFakeChatModel,), {"bind_tools": lambda self, *_, **__: self})(
        messages=iter([wanted, AIMessage("Done.")])
    )
    guard = AutoModeMiddleware(tools=["list_late_orders"], classifier=gate)
    agent = create_agent(chat, [list_late_orders], middleware=[guard])
    messages = agent.invoke({"messages": [HumanMessage("Which orders are late?")]})["messages"]
    done = messages[2].text
    assert "A-17" in done or "blocked because it was classified as risky (probability: 0." in done
