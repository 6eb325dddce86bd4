"""Prompts of a long conversation, as sent to a model without native tool calls."""

from itertools import pairwise

import pytest
from support.graphs import session
from support.mcp_servers import in_process
from support.openai_models import model_at
from support.prompts import selection, sent, system
from support.scripted_openai import ScriptedOpenAI
from support.work_tools import work_server

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
    "List my tasks",
    "Search the web for lamps",
    "Show the project's budget",
    "What is in the calendar?",
    "More?",
)


def selections(scripted: ScriptedOpenAI) -> list[str]:
    """Return the system prompts of all selections."""
    prompts = [system(scripted, number) for number in range(len(scripted.requests))]
    return [prompt for prompt in prompts if "\nTools:\n" in prompt]


@pytest.mark.slow
async def test_twenty_turns_leave_one_palette_and_one_ledger(by_model: Deciders, scripted_openai: ScriptedOpenAI):
    async with session(by_model, in_process(work_server())) as office:
        ledgers = set()
        for turn in range(20):
            scripted_openai.script(NONE, NONE, "There is none.")
            await office.say(f"{SUBJECTS[turn % len(SUBJECTS)]} ({turn})")
            for number in range(len(scripted_openai.requests)):
                prompt = "\n".join(text for _, text in sent(scripted_openai, number))
                (line,) = (line for line in prompt.splitlines() if line.startswith("- office (40 tools"))
                ledgers.add(line)
            prompts = selections(scripted_openai)
            assert prompts
            for prompt in prompts:
                listed = [line for line in prompt.splitlines() if line.startswith("- office.")]
                assert prompt.count("\nTools:\n") == 1
                assert 0 < len(listed) == len({line.split(":")[0] for line in listed}) <= 40
            scripted_openai.requests.clear()
        assert len(ledgers) == 2  # one for tool selection, one for answers


async def test_the_constant_part_of_prompts_is_identical_and_comes_first(
    by_model: Deciders, scripted_openai: ScriptedOpenAI
):
    async with session(by_model, in_process(work_server())) as office:
        for text in SUBJECTS:
            scripted_openai.script(NONE, NONE, "There is none.")
            await office.say(text)
    stable = {prompt.partition("\nTools:\n")[0] for prompt in selections(scripted_openai)}
    assert len(stable) == 1
    assert "- office (40 tools: " in stable.pop()
    prompts = [system(scripted_openai, number) for number in range(len(scripted_openai.requests))]
    answers = [prompt for prompt in prompts if "\n\nYou answer the user" in prompt]
    assert len(answers) == len(SUBJECTS)
    assert all(one == other for one, other in pairwise(answers))
