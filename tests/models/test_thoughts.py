"""Thoughts before an answer never truncate the answer, whatever their length and place."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from support.openai_models import model_at
from support.packets import FILES, packet
from support.scripted_openai import ScriptedOpenAI
from support.scripted_replies import HttpError, Thinks

from packetgate.deciders.language.selection import select_by_model
from packetgate.deciders.protocols import Selection
from packetgate.models.answers import complete
from packetgate.models.model import Model, ModelAnswer
from packetgate.models.options import ModelOptions
from packetgate.models.thoughts import DEFAULT_TOKEN_LIMIT, Thoughts, count_thought_tokens
from packetgate.state.context import RoutingContext
from packetgate.state.errors import DecisionError

LENGTH = 50
GOOD = '<tool_call>{"name":"files__read_file","arguments":{"path":"a.txt"}}</tool_call>'
AT_FIRST = LENGTH + DEFAULT_TOKEN_LIMIT


async def choose(model: Model) -> Selection:
    async def source() -> Model:
        return model

    return await select_by_model(source, packet("Read a.txt"), FILES, RoutingContext(selection_max_tokens=LENGTH))


async def speak(model: Model) -> ModelAnswer:
    return await complete(model, [HumanMessage("Speak.")], user_words="", temperature=0.7, max_tokens=LENGTH)


def lengths(server: ScriptedOpenAI) -> list[int]:
    return [request["max_tokens"] for request in server.requests]


@pytest.mark.parametrize("where", ["beside", "marks"])
async def test_thoughts_have_their_own_room(where: Literal["beside", "marks"], scripted_openai: ScriptedOpenAI):
    model = await model_at(scripted_openai)
    for ask in (choose, speak):
        model.thoughts = Thoughts()
        scripted_openai.requests.clear()
        scripted_openai.script(*[Thinks(5_000, GOOD if ask is choose else "It is seven.", where)] * 2)
        for _ in range(2):
            answer = await ask(model)
        assert lengths(scripted_openai) == [AT_FIRST, AT_FIRST]
        if isinstance(answer, Selection):
            assert [one.params for one in answer.calls] == [{"path": "a.txt"}]
            assert answer.usage.output_tokens == 5_001
        assert model.thoughts.thinks


async def test_a_model_without_thoughts_gets_no_room(scripted_openai: ScriptedOpenAI):
    model = await model_at(scripted_openai)
    scripted_openai.script(GOOD, GOOD)
    await choose(model)
    await choose(model)
    assert lengths(scripted_openai) == [AT_FIRST, LENGTH]


@dataclass(frozen=True)
class Endless:
    """A model whose thoughts never end, and the error message."""

    reply: Thinks
    asked: list[int]
    error: str
    budget: int | None = None


ENDLESS = [
    Endless(Thinks(90_000, GOOD), [AT_FIRST], "set reasoning_effort=low"),
    Endless(Thinks(90_000, GOOD, most=1_000), [AT_FIRST], "use a larger context"),
    Endless(Thinks(90_000, GOOD, "marks"), [LENGTH + 300], "raise thinking_budget, which is 300", 300),
]


@pytest.mark.parametrize("case", ENDLESS, ids=["forever", "limited by its server", "beyond its budget"])
async def test_an_endless_thought_is_an_error_without_retry(case: Endless, scripted_openai: ScriptedOpenAI):
    for ask in (choose, speak):
        model = await model_at(scripted_openai)
        model.thoughts = Thoughts(case.budget)
        scripted_openai.requests.clear()
        scripted_openai.script(*[case.reply] * 9)
        with pytest.raises(DecisionError, match=f"was cut off while thinking .*{case.error}") as caught:
            await ask(model)
        assert lengths(scripted_openai) == case.asked
        assert caught.value.usage.output_tokens > 0


async def test_a_truncated_answer_ends_with_a_note(scripted_openai: ScriptedOpenAI):
    model = await model_at(scripted_openai)
    model.thoughts = Thoughts(0)
    scripted_openai.script(Thinks(0, "so " * 60))
    answer = await speak(model)
    assert answer.text.endswith("[Cut off at 50 tokens: raise answer_max_tokens for longer answers.]")


@pytest.mark.parametrize("ask", [choose, speak])
async def test_room_shrinks_if_the_server_refuses_the_length(
    ask: Callable[[Model], Awaitable[object]], scripted_openai: ScriptedOpenAI
):
    refusal = HttpError(400, "This model's maximum context length is 1024 tokens. You requested 2050.")
    scripted_openai.script(refusal, Thinks(100, GOOD), Thinks(100, GOOD))
    model = await model_at(scripted_openai)
    await ask(model)
    assert lengths(scripted_openai) == [AT_FIRST, LENGTH + DEFAULT_TOKEN_LIMIT // 4]


async def test_a_too_long_prompt_is_an_error(scripted_openai: ScriptedOpenAI):
    scripted_openai.script(*[HttpError(400, "the prompt exceeds the context size")] * 9)
    model = await model_at(scripted_openai)
    with pytest.raises(DecisionError, match="exceeds the context size"):
        await choose(model)
    assert lengths(scripted_openai) == [LENGTH + room for room in (8_000, 2_000, 500, 0)]
    scripted_openai.script(GOOD)
    await choose(model)
    assert lengths(scripted_openai)[-1] == AT_FIRST


async def test_options_override_a_stages_sampling(scripted_openai: ScriptedOpenAI):
    model = await model_at(scripted_openai, options=ModelOptions(temperature=1.0, seed=7, thinking_budget=9))
    scripted_openai.script(GOOD, "Seven.")
    await choose(model)
    await speak(model)
    for request in scripted_openai.requests:
        assert (request["temperature"], request["seed"], request["max_tokens"]) == (1.0, 7, LENGTH + 9)


@pytest.mark.parametrize(
    ("message", "tokens"),
    [
        (AIMessage("Seven."), 0),
        (AIMessage("<think>Hm, hm.</think>Seven."), 5),
        (AIMessage("7", additional_kwargs={"reasoning_content": "Hm, it is seven."}), 9),
    ],
)
def test_thought_tokens_are_counted_or_estimated(message: AIMessage, tokens: int):
    billed = 2 if message.text == "Seven." else 10
    assert count_thought_tokens([message], billed) == tokens
