"""What is said to models and by them is noted for whoever collects it, and for nobody else."""

import asyncio
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from support.openai_models import GOOD, ask_form, model_at
from support.scripted_openai import ScriptedOpenAI
from support.scripted_replies import HttpError

from packetgate.models.answers import complete
from packetgate.models.llama.model import LlamaCppModel
from packetgate.models.requests import collected, exchange
from packetgate.state.errors import DecisionError


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")


async def test_each_request_is_noted_also_one_that_was_refused(scripted_openai: ScriptedOpenAI) -> None:
    scripted_openai.script(HttpError(400, "response_format is not supported"), GOOD)
    with collected() as said:
        await ask_form(await model_at(scripted_openai))
    refused, answered = said
    assert "HTTP 400" in refused.error
    assert (answered.answer, answered.error) == (GOOD, "")
    assert answered.usage.output_tokens == 1


async def test_a_model_in_this_process_is_heard_too(tiny_gguf: Path) -> None:
    model = await asyncio.to_thread(LlamaCppModel.load, str(tiny_gguf), {"n_ctx": 512, "n_threads": 1})
    with collected() as said:
        answer = await complete(
            model, [SystemMessage("Be short."), HumanMessage("Hi")], user_words="", temperature=0.0, max_tokens=4
        )
    (one,) = said
    assert [(message.role, message.text) for message in one.messages] == [("system", "Be short."), ("user", "Hi")]
    assert one.model == tiny_gguf.name
    assert one.usage == answer.usage


async def test_what_tasks_say_is_collected_where_they_began(scripted_openai: ScriptedOpenAI) -> None:
    scripted_openai.script("one", "two", "three")
    model = await model_at(scripted_openai)

    async def say() -> None:
        await complete(model, [HumanMessage("Go on")], user_words="", temperature=0.0, max_tokens=9)

    with collected() as said:
        await asyncio.gather(say(), say())
    await say()
    assert {one.answer for one in said} == {"one", "two"}


async def test_what_no_database_takes_is_replaced(scripted_openai: ScriptedOpenAI) -> None:
    model = await model_at(scripted_openai)
    with collected() as said:
        with exchange(model.chat, [HumanMessage("a\0b")], {}) as answered:
            answered(AIMessage("half \ud800"))
        with pytest.raises(DecisionError), exchange(model.chat, [HumanMessage("")], {}):
            raise DecisionError("why\0")
    assert (said[0].messages[0].text, said[0].answer) == ("a\N{REPLACEMENT CHARACTER}b", "half ?")
    assert said[1].error == "why\N{REPLACEMENT CHARACTER}"
