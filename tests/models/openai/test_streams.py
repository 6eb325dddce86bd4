"""Streamed answers: bounded, and without usage where a server does not take the wish for it."""

import pytest
from support.openai_models import model_at
from support.scripted_openai import ScriptedOpenAI
from support.scripted_replies import CutOff, HttpError, Reply, Stall

from packetgate.models.transport import named_errors
from packetgate.state.errors import DecisionError


@pytest.mark.parametrize("reply", [Stall("Hel"), CutOff("Hel")], ids=["stalls", "breaks off"])
async def test_a_stream_that_ends_badly_is_bounded(reply: Reply, scripted_openai: ScriptedOpenAI):
    model = await model_at(scripted_openai, seconds=0.3)
    scripted_openai.script(reply)
    seen: list[str] = []
    with pytest.raises(DecisionError, match=r"did not answer in time|broke off"), named_errors(model.chat):  # noqa: PT012
        async for chunk in model.chat.astream("Hello"):
            seen.append(chunk.text)  # noqa: PERF401
    assert "".join(seen) == "Hel"


@pytest.mark.parametrize("status", [400, 422])
async def test_a_stream_without_usage_where_it_is_refused(status: int, scripted_openai: ScriptedOpenAI):
    model = await model_at(scripted_openai)
    scripted_openai.refuses = {"stream_options": HttpError(status, "Extra inputs are not permitted")}
    scripted_openai.script("Hello, you!", "Hello again!")
    for expected in ("Hello, you!", "Hello again!"):
        assert "".join([chunk.text async for chunk in model.chat.astream("Hello")]) == expected
    assert ["stream_options" in request for request in scripted_openai.requests] == [True, False, False]


async def test_another_refusal_of_a_stream_is_told_as_it_is(scripted_openai: ScriptedOpenAI):
    model = await model_at(scripted_openai)
    scripted_openai.refuses = {"stream": HttpError(400, "the prompt is too long")}
    with pytest.raises(DecisionError, match="the prompt is too long"), named_errors(model.chat):
        _ = [chunk async for chunk in model.chat.astream("Hello")]
    scripted_openai.refuses = {}
    scripted_openai.script("Hello")
    chunks = [chunk async for chunk in model.chat.astream("Hello")]
    assert any(chunk.usage_metadata for chunk in chunks)
