"""Review by a chat model: one request for all calls, without a fallback."""

import json

import pytest
from support.origins import origins
from support.packets import CONTEXT, FILES, done, packet
from support.prompts import last, review, system
from support.scripted_openai import HttpError, ScriptedOpenAI

from packetgate.deciders.choosing import language_deciders
from packetgate.models.pool import ModelSource
from packetgate.models.thoughts import DEFAULT_TOKEN_LIMIT
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


async def judge(model: ModelSource, *calls, context: RoutingContext = CONTEXT):
    given = packet("Read a.txt and tidy up", *calls)
    return await language_deciders(model, model).reviewer(given, FILES, context)


async def test_several_calls_are_reviewed_in_one_request(model: ModelSource, scripted_openai: ScriptedOpenAI):
    scripted_openai.script(
        json.dumps(
            {
                "reviews": {
                    "2": {"approved": False, "confidence": 0.8, "reasoning": "not asked for"},
                    "1": {"approved": True, "confidence": 0.9, "reasoning": "right"},
                }
            }
        )
    )
    judged = await judge(model, READ, DELETE)
    assert len(scripted_openai.requests) == 1
    assert [(one.call_id, one.approved, one.confidence, one.reasoning) for one in judged.reviews] == [
        (READ.call_id, True, 0.9, "right"),
        (DELETE.call_id, False, 0.8, "not asked for"),
    ]
    assert judged.decided_by == "model"
    assert judged.usage.input_tokens > 0


async def test_the_prompt_has_the_request_and_the_calls(model: ModelSource, scripted_openai: ScriptedOpenAI):
    scripted_openai.script(review(0.9, 0.9))
    await judge(model, READ, DELETE, context=RoutingContext(review_temperature=0.25, review_max_tokens=60))
    request = scripted_openai.requests[0]
    assert (request["temperature"], request["max_tokens"]) == (0.25, 120 + DEFAULT_TOKEN_LIMIT)
    text = last(scripted_openai)
    assert "Request:\nRead a.txt and tidy up" in text
    assert '1. files.read_file (read): Read a text file.\n   arguments: {"path":"a.txt"}' in text
    assert "it takes: {path: string}" in text
    assert "it reads" not in text
    assert "all from the user or a default" in text
    assert "2. files.delete_file (write)" in text
    assert "where the arguments come from: path from the text that files.read_file returned" in text
    assert "a.txt" not in system(scripted_openai)
    assert "0.99" not in text


async def test_one_invalid_answer_is_retried(model: ModelSource, scripted_openai: ScriptedOpenAI):
    scripted_openai.script(review(0.9), review(0.9, 0.8))
    judged = await judge(model, READ, DELETE)
    assert [one.confidence for one in judged.reviews] == [0.9, 0.8]
    assert '"reviews" must hold one verdict for each of the calls 1, 2' in last(scripted_openai)


async def test_an_unreachable_model_raises(model: ModelSource, scripted_openai: ScriptedOpenAI):
    scripted_openai.script(HttpError(500))
    with pytest.raises(DecisionError, match="HTTP 500"):
        await judge(model, READ)


RISKY = RoutingContext(review="risky")
FOREIGN = READ.model_copy(update={"provenance": origins(path="text:files.read_file")})


async def test_settings_can_skip_the_review_of_harmless_reads(model: ModelSource, scripted_openai: ScriptedOpenAI):
    judged = await judge(model, READ, context=RISKY)
    assert scripted_openai.requests == []
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
async def test_other_calls_are_reviewed(
    model: ModelSource, scripted_openai: ScriptedOpenAI, calls: tuple[ToolCall, ...], context: RoutingContext
):
    scripted_openai.script(review(*[0.9] * len(calls)))
    assert (await judge(model, *calls, context=context)).decided_by == "model"
    assert len(scripted_openai.requests) == 1
