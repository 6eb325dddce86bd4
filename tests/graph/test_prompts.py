"""What stands in the prompts of a long conversation, as the server of a model gets them that is offered no tools."""

import re
from itertools import pairwise

import pytest
from support.graphs import Session, session
from support.mcp_servers import in_process
from support.openai_models import model_at
from support.prompts import call, review, selection, sent, system
from support.scripted_openai import ScriptedOpenAI
from support.work_tools import READS, work_server

from packetgate.deciders.choosing import language_deciders
from packetgate.deciders.protocols import Deciders
from packetgate.models.openai.model import OpenAICompatible
from packetgate.models.options import ModelOptions

NONE = selection("none")


@pytest.fixture
def by_model(scripted_openai: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch) -> Deciders:
    """Deciders that ask the scripted server in a form."""
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


def used(tool: str, **params: str) -> list[str]:
    """Return the answers of a turn that calls a tool."""
    return [call(tool, **params), review(0.9), "There it is."]


def selections(scripted: ScriptedOpenAI) -> list[str]:
    """Return the system prompts of all selections."""
    prompts = [system(scripted, number) for number in range(len(scripted.requests))]
    return [prompt for prompt in prompts if "\nTools:\n" in prompt]


def full_text(prompt: str, tool: str) -> bool:
    """Whether a prompt shows a tool with its arguments."""
    lines = prompt.splitlines()
    at = next((number for number, line in enumerate(lines) if line.startswith(f"- {tool}: ")), None)
    return at is not None and len(lines) > at + 1 and lines[at + 1].startswith("  arguments: ")


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
        assert len(ledgers) == 2  # to choose tools by, and to answer with


async def test_what_stays_is_the_same_to_the_byte_and_comes_first(by_model: Deciders, scripted_openai: ScriptedOpenAI):
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


async def test_a_tool_that_served_is_in_full_in_the_next_prompt_of_its_session_and_in_no_others(
    by_model: Deciders, scripted_openai: ScriptedOpenAI
):
    async with session(by_model, in_process(work_server())) as mine:
        theirs = Session(mine.graph, mine.context, name="theirs")
        tool = "office.get_project_timeline"
        scripted_openai.script(*used(tool, project_id="p1"))
        await mine.say("Show the timeline of project p1")
        scripted_openai.requests.clear()
        scripted_openai.script(NONE, NONE, "None.")
        await theirs.say("List my tasks")
        assert re.search(r"^- office \(.*get_project_timeline", selections(scripted_openai)[0], re.MULTILINE)
        assert not any(full_text(prompt, tool) for prompt in selections(scripted_openai))
        scripted_openai.requests.clear()
        scripted_openai.script(NONE, NONE, "None.")
        await mine.say("List my tasks")
        assert all(full_text(prompt, tool) for prompt in selections(scripted_openai))
        assert not full_text(selections(scripted_openai)[0], "office.get_task_history")


async def test_a_call_that_failed_promotes_nothing(by_model: Deciders, scripted_openai: ScriptedOpenAI):
    async with session(by_model, in_process(work_server())) as office:
        scripted_openai.script(call("office.get_task", task_id="t1"), review(0.3), "It was skipped.")
        context = office.context.model_copy(update={"on_low_confidence": "skip"})
        packet = await Session(office.graph, context).say("Show task t1")
        assert packet.context.recent_tools == ()


@pytest.mark.parametrize(
    ("wish", "shown"),
    [
        ("office.web_news", {"office.web_news"}),
        ("documentation", {"office.search_docs", "office.get_doc_page", "office.list_doc_pages"}),
        ("web_serch", set()),
    ],
)
async def test_what_is_asked_for_is_described_in_the_next_prompt(
    by_model: Deciders, scripted_openai: ScriptedOpenAI, wish: str, shown: set[str]
):
    async with session(by_model, in_process(work_server())) as office:
        scripted_openai.script(selection("describe", tools=[wish]), NONE, NONE, "None.")
        packet = await office.say("List my tasks")
        first, second = selections(scripted_openai)[:2]
        assert not any(full_text(first, tool) for tool in shown)
        assert all(full_text(second, tool) for tool in shown)
        assert packet.routing.reinjection_count == 0
        nearest = [text for _, text in sent(scripted_openai, 1) if "Nearest tools: " in text]
        assert bool(nearest) is not bool(shown)
        assert not nearest or "office.web_search" in nearest[0]


async def test_a_palette_that_left_tools_out_is_widened_once(by_model: Deciders, scripted_openai: ScriptedOpenAI):
    async with session(by_model, in_process(work_server())) as office:
        scripted_openai.script(NONE, NONE, "None.")
        packet = await office.say("List my tasks", palette_size=8)
        narrow, wide = selections(scripted_openai)
        offered, then_offered = (set(re.findall(r"office\.\w+", prompt)) for prompt in (narrow, wide))
        assert "office.list_tasks" in offered
        assert then_offered - offered
        assert packet.routing.widened
        assert packet.response.candidate == "None."


def test_the_catalogue_of_these_tests_has_forty_tools():
    from support.work_tools import WRITES

    assert len(READS | WRITES) == 40
