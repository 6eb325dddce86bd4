"""Prompts of a long conversation, as sent to a model without native tool calls."""

from itertools import pairwise

import pytest
from support.graphs import session
from support.notebook import Notebook
from support.openai_models import model_at
from support.prompts import selection, system
from support.scripted_openai import ScriptedOpenAI

from packetgate.deciders.choosing import language_deciders
from packetgate.deciders.protocols import Deciders
from packetgate.models.openai.compatible import OpenAICompatible
from packetgate.models.options import ModelOptions

NONE = selection("none")


@pytest.fixture
def by_model(scripted_openai: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch) -> Deciders:
    """Deciders on the scripted server without native tool calls."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")

    async def model() -> OpenAICompatible:
        return await model_at(scripted_openai, options=ModelOptions(native_tools=False))

    return language_deciders(model, model)


SUBJECTS = (
    "List my notes",
    "Check the weather in Bern",
    "Read note a",
    "What is in the calendar?",
    "More?",
)


def selections(scripted: ScriptedOpenAI) -> list[str]:
    """Return the system prompts of all selections."""
    prompts = [system(scripted, number) for number in range(len(scripted.requests))]
    return [prompt for prompt in prompts if "\nTools:\n" in prompt]


async def test_the_constant_part_of_prompts_is_identical_and_comes_first(
    by_model: Deciders, notebook: Notebook, scripted_openai: ScriptedOpenAI
):
    async with session(by_model, notebook) as talk:
        for text in SUBJECTS:
            scripted_openai.script(NONE, NONE, "There is none.")
            await talk.say(text)
    stable = {prompt.partition("\nTools:\n")[0] for prompt in selections(scripted_openai)}
    assert len(stable) == 1
    assert "- notebook (8 tools: " in stable.pop()
    prompts = [system(scripted_openai, number) for number in range(len(scripted_openai.requests))]
    answers = [prompt for prompt in prompts if "\n\nYou answer the user" in prompt]
    assert len(answers) == len(SUBJECTS)
    assert all(one == other for one, other in pairwise(answers))
