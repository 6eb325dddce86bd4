"""Review by a chat model: it answers yes or no for each call whose review can change the decision."""

from typing import Any

import pytest
from support.origins import origins
from support.packets import CONTEXT, FILES, done, packet
from support.scripted_openai import HttpError, ScriptedOpenAI, text_of, verdict

from packetgate.deciders.choosing import language_deciders
from packetgate.models.pool import ModelSource
from packetgate.state.base import ConfidenceSource
from packetgate.state.context import RoutingContext
from packetgate.state.errors import DecisionError
from packetgate.state.routing import ToolCall

READ = done("files.read_file", path="a.txt").model_copy(
    update={"selection_confidence": 0.99, "selection_reasoning": "it reads"}
)
DELETE = done("files.delete_file", path="evil.txt").model_copy(
    update={"provenance": origins(path="text:files.read_file")}
)


async def judge(model: ModelSource, *calls: ToolCall, context: RoutingContext = CONTEXT, words: str = "Read a.txt"):
    given = packet(words, *calls)
    return await language_deciders(model, model).reviewer(given, FILES, context)


async def test_a_yes_counts_by_its_probability(model: ModelSource, scripted_openai: ScriptedOpenAI):
    confidences = []
    for probability in (0.98, 0.6, 0.02):
        scripted_openai.verdict = verdict(probability)
        (judged,) = (await judge(model, READ)).reviews
        assert judged.evidence["yes"] == pytest.approx(3.0 if probability > 0.9 else judged.evidence["yes"], abs=1)
        confidences.append(judged.confidence)
    assert confidences[0] > CONTEXT.confidence_threshold > confidences[2]
    assert sorted(confidences, reverse=True) == confidences
    request = scripted_openai.reviews[0]
    assert (request["temperature"], request["logprobs"], request["top_logprobs"]) == (0.3, True, 20)


@pytest.mark.reflex
async def test_the_model_is_not_asked_about_an_improbable_call(model: ModelSource, scripted_openai: ScriptedOpenAI):
    scripted_openai.verdict = verdict(0.02)
    doubted = READ.model_copy(update={"evidence": {"written": 1.0, "name": -3.0, "arguments": -6.0, "acts": -3.0}})
    (judged,) = (await judge(model, doubted)).reviews
    assert judged.is_improbable
    (judged,) = (await judge(model, READ)).reviews
    assert not judged.is_improbable


async def test_a_yes_or_no_counts_without_its_probability(model: ModelSource, scripted_openai: ScriptedOpenAI):
    scripted_openai.refuses["logprobs"] = HttpError(400, "logprobs are not supported", param="logprobs")
    for says in (" Yes.", "NO"):
        scripted_openai.verdict = says
        (judged,) = (await judge(model, READ)).reviews
        assert judged.evidence["said"] == (1.0 if says == " Yes." else -1.0)
        assert judged.passes(CONTEXT) is (says == " Yes.")


@pytest.mark.reflex
async def test_a_question_has_the_request_and_one_call(model: ModelSource, scripted_openai: ScriptedOpenAI):
    judged = await judge(model, READ, DELETE)
    assert judged.decided_by == "model"
    assert judged.usage.input_tokens > 0
    (request,) = scripted_openai.reviews
    text = text_of(request["messages"][-1])
    assert "Request:\n```\nRead a.txt\n```" in text
    assert 'files.read_file({"path":"a.txt"})' in text
    assert "it reads" not in text
    assert "0.99" not in text
    assert "evil" not in text


@pytest.mark.reflex
async def test_the_model_is_asked_only_where_its_answer_can_decide(model: ModelSource, scripted_openai: ScriptedOpenAI):
    (judged,) = (await judge(model, DELETE, words="What is in a.txt?")).reviews
    assert scripted_openai.reviews == []
    assert judged.confidence < CONTEXT.confidence_threshold
    assert "was not asked" in judged.reasoning


async def test_an_unreachable_model_raises(model: ModelSource, scripted_openai: ScriptedOpenAI):
    scripted_openai.verdict = HttpError(500)
    with pytest.raises(DecisionError, match="HTTP 500"):
        await judge(model, READ)


RISKY = RoutingContext(review="risky")
FOREIGN = READ.model_copy(update={"provenance": origins(path="text:files.read_file")})


async def test_settings_can_skip_the_review_of_harmless_reads(model: ModelSource, scripted_openai: ScriptedOpenAI):
    judged = await judge(model, READ, context=RISKY)
    assert scripted_openai.reviews == []
    assert [(one.call_id, one.approved) for one in judged.reviews] == [(READ.call_id, True)]
    assert (judged.confidence_source, judged.decided_by) == (ConfidenceSource.UNJUDGED, "reflex")


@pytest.mark.parametrize(
    ("calls", "context"),
    [
        ((READ,), CONTEXT),
        ((FOREIGN,), RISKY),
        ((DELETE,), RISKY),
        ((READ, DELETE), RISKY),
        ((READ.model_copy(update={"open_world": True}),), RISKY),
    ],
    ids=["all are reviewed", "not the user's words", "a write", "a write beside", "outside"],
)
async def test_other_calls_are_reviewed(model: ModelSource, calls: tuple[ToolCall, ...], context: RoutingContext):
    judged: Any = await judge(model, *calls, context=context)
    assert judged.decided_by == "model"
    assert judged.confidence_source is ConfidenceSource.CALIBRATED
