import asyncio

import pytest
from langchain_core.messages import HumanMessage, SystemMessage
from pydantic import BaseModel, Field
from support.scripted_openai import ScriptedOpenAI

from packetgate.models.model import Model, StructuredResult, structured_answer
from packetgate.models.openai.connect import connect
from packetgate.models.openai.servers import Endpoint
from packetgate.models.schemas import CONFIDENCE, AnswerForm, object_schema
from packetgate.prompts.rendering import render
from packetgate.state.base import TokenUsage
from packetgate.state.errors import DecisionError


class Verdict(BaseModel):
    approved: bool
    confidence: float = Field(ge=0, le=1)


GOOD = '{"approved": true, "confidence": 0.9}'
VERDICT = Verdict(approved=True, confidence=0.9)
FORM = AnswerForm("verdict", object_schema(approved={"type": "boolean"}, confidence=CONFIDENCE))
MESSAGES = [SystemMessage("Judge."), HumanMessage("Is it fine?")]


@pytest.fixture
def model(scripted_openai: ScriptedOpenAI) -> Model:
    return Model(connect("scripted", Endpoint(scripted_openai.base_url, "sk-very-secret-key", timeout=10)))


async def ask(model: Model, **changes) -> StructuredResult[Verdict]:
    settings = {"temperature": 0.15, "max_tokens": 50, "top_p": 0.9} | changes
    return await structured_answer(model, MESSAGES, Verdict, FORM, **settings)


async def test_a_valid_answer_is_parsed(model: Model, scripted_openai: ScriptedOpenAI):
    scripted_openai.script(GOOD)
    answer = await ask(model)
    assert answer == StructuredResult(VERDICT, usage=TokenUsage(input_tokens=4, output_tokens=4))
    assert scripted_openai.requests[0]["stream"] is False


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ("Certainly!", "no complete JSON object"),
        ("", "empty"),
        ('{"approved": true}', "confidence: Field required"),
        ('{"approved": true, "confidence": 7}', "confidence: Input should be less than or equal to 1"),
    ],
)
async def test_an_invalid_answer_is_corrected_once(
    model: Model, scripted_openai: ScriptedOpenAI, bad: str, problem: str
):
    scripted_openai.script(bad, GOOD)
    answer = await ask(model)
    assert (answer.value, len(scripted_openai.requests)) == (VERDICT, 2)
    first, second = scripted_openai.requests
    assert second["messages"][:2] == first["messages"]
    assert second["messages"][2] == {"role": "assistant", "content": bad}
    assert second["messages"][3]["role"] == "user"
    assert second["messages"][3]["content"].startswith("That answer can not be used: ")
    assert problem in second["messages"][3]["content"]
    assert answer.usage.output_tokens == len(bad.split()) + len(GOOD.split())


async def test_an_objection_is_sent_to_the_model(model: Model, scripted_openai: ScriptedOpenAI):
    scripted_openai.script('{"approved": false, "confidence": 0.9}', GOOD)
    answer = await ask(model, validate=lambda verdict: None if verdict.approved else "it must be approved")
    assert answer.value == VERDICT
    assert scripted_openai.requests[1]["messages"][-1]["content"] == render("repair", problem="it must be approved")


async def test_two_invalid_answers_raise(model: Model, scripted_openai: ScriptedOpenAI):
    scripted_openai.script("no", "still no", GOOD)
    with pytest.raises(DecisionError, match=r"scripted at http.* gave no valid Verdict in two attempts: .*still no"):
        await ask(model)
    assert len(scripted_openai.requests) == 2


def test_one_model_serves_several_event_loops(model: Model, scripted_openai: ScriptedOpenAI):
    scripted_openai.script(GOOD, GOOD, GOOD)
    for _ in range(3):
        assert asyncio.run(ask(model)).value == VERDICT
