"""What is said to models and by them is noted for whoever collects it, and for nobody else."""

import asyncio
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from support.openai_models import GOOD, ask_form, model_at
from support.scripted_openai import ScriptedOpenAI
from support.scripted_replies import HttpError

from packetgate.models.answers import complete
from packetgate.models.llama.chat import LlamaCppModel
from packetgate.models.requests import collect_requests, record_request
from packetgate.state.errors import DecisionError


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")


async def test_every_request_is_recorded_including_refused_ones(scripted_openai: ScriptedOpenAI) -> None:
    scripted_openai.script(HttpError(400, "response_format is not supported"), GOOD)
    with collect_requests() as said:
        await ask_form(await model_at(scripted_openai))
    refused, answered = said
    assert "HTTP 400" in refused.error
    assert (answered.answer, answered.error) == (GOOD, "")
    assert answered.usage.output_tokens == 1


async def test_requests_to_a_local_model_are_recorded(tiny_gguf: Path) -> None:
    model = await asyncio.to_thread(LlamaCppModel.load, str(tiny_gguf), {"n_ctx": 512, "n_threads": 1})
    with collect_requests() as said:
        answer = await complete(
            model, [SystemMessage("Be short."), HumanMessage("Hi")], user_words="", temperature=0.0, max_tokens=4
        )
    (one,) = said
    assert [(message.role, message.text) for message in one.messages] == [("system", "Be short."), ("user", "Hi")]
    assert one.model == tiny_gguf.name
    assert one.usage == answer.usage


async def test_requests_of_tasks_are_collected(scripted_openai: ScriptedOpenAI) -> None:
    scripted_openai.script("one", "two", "three")
    model = await model_at(scripted_openai)

    async def say() -> None:
        await complete(model, [HumanMessage("Go on")], user_words="", temperature=0.0, max_tokens=9)

    with collect_requests() as said:
        await asyncio.gather(say(), say())
    await say()
    assert {one.answer for one in said} == {"one", "two"}


async def test_characters_that_databases_refuse_are_replaced(scripted_openai: ScriptedOpenAI) -> None:
    model = await model_at(scripted_openai)
    with collect_requests() as said:
        with record_request(model.chat, [HumanMessage("a\0b")], {}) as answered:
            answered(AIMessage("half \ud800"))
        with pytest.raises(DecisionError), record_request(model.chat, [HumanMessage("")], {}):
            raise DecisionError("why\0")
    assert (said[0].messages[0].text, said[0].answer) == ("a\N{REPLACEMENT CHARACTER}b", "half ?")
    assert said[1].error == "why\N{REPLACEMENT CHARACTER}"
