"""Whether requests to models failed is noted for whoever collects it, and for nobody else."""

import asyncio

import pytest
from langchain_core.messages import HumanMessage
from support.openai_models import GOOD, ask_form, model_at
from support.scripted_openai import ScriptedOpenAI
from support.scripted_replies import HttpError

from packetgate.models.answers import complete
from packetgate.models.requests import collect_requests


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")


async def test_the_errors_of_requests_are_collected(scripted_openai: ScriptedOpenAI) -> None:
    scripted_openai.script(HttpError(400, "response_format is not supported"), GOOD)
    with collect_requests() as errors:
        await ask_form(await model_at(scripted_openai))
    refused, answered = errors
    assert "HTTP 400" in refused
    assert answered == ""


async def test_requests_of_tasks_are_collected(scripted_openai: ScriptedOpenAI) -> None:
    scripted_openai.script("one", "two", "three")
    model = await model_at(scripted_openai)

    async def say() -> None:
        await complete(model, [HumanMessage("Go on")], user_words="", temperature=0.0, max_tokens=9)

    with collect_requests() as errors:
        await asyncio.gather(say(), say())
    await say()
    assert errors == ["", ""]
