"""The complete graph with a chat model: the prompts, and decisions that the user does not see."""

from itertools import pairwise

import pytest
from support.graphs import run_once, session
from support.notebook import Notebook
from support.openai_models import model_at
from support.prompts import call, selection, system
from support.scripted_openai import HttpError, ScriptedOpenAI

from packetgate.deciders.choosing import language_deciders
from packetgate.deciders.protocols import Deciders
from packetgate.models.openai.compatible import OpenAICompatible
from packetgate.models.options import ModelOptions
from packetgate.state.errors import ModelError

READ_A = call("notebook.read_note", name="a")


async def test_a_read_is_selected_reviewed_and_answered(
    by_model: Deciders, notebook: Notebook, scripted_openai: ScriptedOpenAI
):
    scripted_openai.script(READ_A, "It says apples.")
    packet = await run_once(by_model, "Read note a", notebook)
    assert packet.response.candidate == packet.messages[-1].text == "It says apples."
    assert notebook.calls == [("read_note", {"name": "a"})]
    spent = {stage for stage, usage in packet.metrics.token_usage.items() if usage.input_tokens}
    assert spent == {"select_tool", "review_selection"}
    first, last_one = scripted_openai.requests
    assert first["tools"] == last_one["tools"], "the cached prompt part is the same"
    decided = {entry.step: entry.decided_by for entry in packet.reasoning.reflection_log if entry.decided_by}
    assert decided == {
        "detect_intent": "reflex",
        "select_tool": "model",
        "review_selection": "model",
        "respond": "model",
    }


async def test_with_all_models_down_a_turn_answers_only_with_a_fallback(
    by_model: Deciders, notebook: Notebook, scripted_openai: ScriptedOpenAI
):
    """`reflex` selects and answers as the fallback. No review succeeds, so nothing runs."""
    scripted_openai.script(*[HttpError(500)] * 20)
    scripted_openai.verdict = HttpError(500)
    with pytest.raises(ModelError, match="HTTP 500"):
        await run_once(by_model, "Read note name=a", notebook)
    assert by_model.lite is not None
    with_fallback = language_deciders(by_model.lite, by_model.lite, fallback=True)
    packet = await run_once(with_fallback, "Read note name=a", notebook)
    assert notebook.calls == []
    assert "notebook.read_note (name=a) was skipped" in packet.response.candidate
    fallbacks = {entry.step for entry in packet.reasoning.reflection_log if entry.is_fallback}
    assert fallbacks == {"select_tool", "respond"}
    assert "[Decided without a language model: select_tool, respond; " in packet.messages[-1].text


async def test_the_constant_part_of_prompts_is_identical_and_comes_first(
    notebook: Notebook, scripted_openai: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch
):
    """Without native tool calls, each selection's system prompt lists the tools after the rules."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")

    async def model() -> OpenAICompatible:
        return await model_at(scripted_openai, options=ModelOptions(native_tools=False))

    requests, none = ("List my notes", "Check the weather in Bern", "More?"), selection("none")
    async with session(language_deciders(model, model), notebook) as talk:
        for text in requests:
            scripted_openai.script(none, none, "There is none.")
            await talk.say(text)
    prompts = [system(scripted_openai, number) for number in range(len(scripted_openai.requests))]
    (stable,) = {prompt for prompt in prompts if "\nYou may call these tools:\n" in prompt}
    assert stable.count('{"name":"notebook__') == 8
    answers = [prompt for prompt in prompts if "\n\nYou answer the user" in prompt]
    assert len(answers) == len(requests)
    assert all(one == other for one, other in pairwise(answers))
