"""Selection in JSON by a model without tools: one correction, then the fallback."""

import pytest
from support.openai_models import model_at
from support.packets import CONTEXT, FILES, packet
from support.prompts import call, last, selection, sent, system
from support.scripted_openai import ScriptedOpenAI

from packetgate.deciders.language.selection import select_by_model
from packetgate.models.openai.compatible import OpenAICompatible
from packetgate.models.options import ModelOptions
from packetgate.models.pool import ModelSource
from packetgate.models.thoughts import DEFAULT_TOKEN_LIMIT
from packetgate.state.context import RoutingContext
from packetgate.state.routing import Correction

ASK = packet("Read a.txt")


@pytest.fixture
def model(scripted_openai: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch) -> ModelSource:
    """A chat model that is offered no tools."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")

    async def source() -> OpenAICompatible:
        return await model_at(scripted_openai, options=ModelOptions(native_tools=False))

    return source


async def select(model: ModelSource, given=ASK, context: RoutingContext = CONTEXT):
    return await select_by_model(model, given, FILES, context)


async def test_the_prompt_has_the_palette_and_the_request(model: ModelSource, scripted_openai: ScriptedOpenAI):
    scripted_openai.script(selection("none"))
    context = RoutingContext(
        selection_temperature=0.2, selection_top_p=0.8, selection_max_tokens=99, max_parallel_calls=2
    )
    await select(model, context=context)
    request = scripted_openai.requests[0]
    assert (request["temperature"], request["top_p"], request["max_tokens"]) == (0.2, 0.8, 99 + DEFAULT_TOKEN_LIMIT)
    assert "- files.read_file: Read a text file." in system(scripted_openai)
    assert "\n  arguments: {path: string}" in system(scripted_openai)
    assert "at most 2" in system(scripted_openai)
    assert last(scripted_openai).startswith("Request:\nRead a.txt\n\n(It is ")


async def test_a_parameters_name_is_not_its_value(model: ModelSource, scripted_openai: ScriptedOpenAI):
    named = {"tool": "files.search_files", "params": {"query": "Query"}}
    scripted_openai.script(selection("call", calls=[named]), selection("clarify", question="What for?"))
    assert (await select(model, packet("Search my files"))).action == "clarify"
    assert "`files.search_files` needs a value for `query`, not its name" in last(scripted_openai)
    scripted_openai.script(selection("call", calls=[named]))
    asked = await select(model, packet('Search my files for "query"'))
    assert asked.calls[0].params == {"query": "Query"}


@pytest.mark.parametrize(
    ("wrong", "problem", "says"),
    [
        (call("files.read_file", path=["a.txt"]), "invalid_value", "cannot take this value of `path`"),
        (call("files.read_file", file="a.txt"), "unknown_parameter", "has no parameter `file`"),
        (call("files.read_file"), "missing_parameter", "needs `path`: it is missing."),
        (call("files.read_file", path="a", deep=True), "unknown_parameter", "It takes: path (string, required)."),
    ],
)
async def test_invalid_calls_are_corrected_once(
    model: ModelSource, scripted_openai: ScriptedOpenAI, wrong: str, problem: str, says: str
):
    scripted_openai.script(wrong, call("files.read_file", path="a.txt"))
    chosen = await select(model)
    assert [(one.tool_name, one.params) for one in chosen.calls] == [("files.read_file", {"path": "a.txt"})]
    assert chosen.corrections[0].problem == problem
    assert len(scripted_openai.requests) == 2
    assert sent(scripted_openai)[-2] == ("assistant", wrong)
    assert says in last(scripted_openai)
    assert chosen.corrections[0].message in last(scripted_openai)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("Sure, I will read it.", "no complete JSON object"),
        (selection("call"), '"calls" is empty'),
        (selection("clarify"), '"question" is empty'),
        (selection("describe"), '"tools" is empty'),
        (selection("dance"), "action"),
        (selection("call", calls=[{"tool": "", "params": {}}]), "calls.0.tool"),
    ],
)
async def test_a_malformed_answer_is_retried(
    model: ModelSource, scripted_openai: ScriptedOpenAI, wrong: str, says: str
):
    scripted_openai.script(wrong, selection("none"))
    assert (await select(model)).action == "none"
    assert "That answer can not be used" in last(scripted_openai)
    assert says in last(scripted_openai)


async def test_the_prompt_has_earlier_corrections_and_nearest_tools(
    model: ModelSource, scripted_openai: ScriptedOpenAI
):
    note = Correction(tool_name="x", problem="unknown_tool", message="There is no tool `x`.")
    repair = Correction(tool_name="x", problem="coerced", message="It was read as 5.", is_repaired=True)
    given = packet(
        "Read a.txt",
        corrections=(repair, note),
        describe_rounds=1,
        suggestions=("files.read_file", "files.write_file"),
    )
    scripted_openai.script(selection("none"))
    await select(model, given)
    assert "Corrections:\n- There is no tool `x`." in last(scripted_openai)
    assert repair.message not in last(scripted_openai)
    assert "Nearest tools: files.read_file, files.write_file" in last(scripted_openai)
