"""The complete graph with a chat model: its prompts, and decisions that stay hidden from the user."""

from support.graphs import run_once
from support.notebook import Notebook
from support.prompts import call, review
from support.scripted_openai import HttpError, ScriptedOpenAI

from packetgate.deciders.protocols import Deciders

READ_A = call("notebook.read_note", name="a")


async def test_a_read_is_selected_reviewed_and_answered(
    by_model: Deciders, notebook: Notebook, scripted_openai: ScriptedOpenAI
):
    scripted_openai.script(READ_A, review(0.9), "It says apples.")
    packet = await run_once(by_model, "Read note a", notebook)
    assert packet.response.candidate == packet.messages[-1].text == "It says apples."
    assert notebook.calls == [("read_note", {"name": "a"})]
    spent = {stage for stage, usage in packet.metrics.token_usage.items() if usage.input_tokens}
    assert spent == {"select_tool", "review_selection"}
    first, _, last_one = scripted_openai.requests
    assert first["tools"] == last_one["tools"], "what was read once need not be read anew"
    decided = {entry.step: entry.decided_by for entry in packet.reasoning.reflection_log if entry.decided_by}
    assert decided == {
        "detect_intent": "reflex",
        "select_tool": "model",
        "review_selection": "model",
        "respond": "model",
    }


async def test_with_all_models_down_a_turn_still_answers(
    by_model: Deciders, notebook: Notebook, scripted_openai: ScriptedOpenAI
):
    """No model answers, so `reflex` decides. No review succeeds, so nothing runs."""
    scripted_openai.script(*[HttpError(500)] * 10)
    packet = await run_once(by_model, "Read note name=a", notebook)
    assert notebook.calls == []
    assert "notebook.read_note (name=a) was skipped" in packet.response.candidate
    fallbacks = {entry.step for entry in packet.reasoning.reflection_log if entry.is_fallback}
    assert fallbacks == {"select_tool", "respond"}
