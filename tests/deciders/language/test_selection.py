"""Selection in JSON by a model without tools: one correction, then the fallback."""

import pytest
from support.openai_models import model_at
from support.packets import CONTEXT, FILES, packet
from support.prompts import call, last, selection, sent, system
from support.scripted_openai import ScriptedOpenAI

from packetgate.deciders.choosing import language_deciders
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


async def test_a_valid_call_is_selected(model: ModelSource, scripted_openai: ScriptedOpenAI):
    both = [{"tool": "files.read_file", "params": {"path": name}} for name in ("a.txt", "b.txt")]
    scripted_openai.script(selection("call", calls=both))
    chosen = await select(model)
    assert [(one.tool_name, one.params["path"]) for one in chosen.calls] == [
        ("files.read_file", "a.txt"),
        ("files.read_file", "b.txt"),
    ]
    assert (chosen.action, chosen.decided_by) == ("call", "model")
    assert chosen.calls[0].reasoning == "because"
    assert chosen.corrections == ()


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
    assert last(scripted_openai) == "Request:\nRead a.txt"


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


async def test_an_unusable_selection_falls_back_to_reflex(model: ModelSource, scripted_openai: ScriptedOpenAI):
    scripted_openai.script("Sure.", "I did it.")
    chosen = await language_deciders(model, model).selector(ASK, FILES, CONTEXT)
    assert (chosen.is_fallback, chosen.decided_by) == (True, "reflex")
    assert "in two attempts" in chosen.fallback_reason
    assert "I did it." in chosen.fallback_reason
    assert [(one.tool_name, one.params) for one in chosen.calls] == [("files.read_file", {"path": "a.txt"})]


@pytest.mark.parametrize(
    "answer",
    [
        call("read_file", path="a.txt"),
        call("files.read_file", pth="a.txt"),
        call("files.read_file", path=5),
        call("call_mcp_tool", name="files.read_file", arguments={"path": "a.txt"}),
    ],
)
async def test_repairable_calls_need_no_second_request(
    model: ModelSource, scripted_openai: ScriptedOpenAI, answer: str
):
    scripted_openai.script(answer)
    assert (await select(model)).corrections == ()
    assert len(scripted_openai.requests) == 1


@pytest.mark.parametrize("name", ["files.shred_file", "nothing.at_all"])
async def test_an_unknown_tool_is_not_corrected_by_the_model(
    model: ModelSource, scripted_openai: ScriptedOpenAI, name: str
):
    """The call is not corrected; it widens the palette."""
    scripted_openai.script(call(name, path="a.txt"))
    chosen = await select(model)
    assert [one.tool_name for one in chosen.calls] == [name]
    assert len(scripted_openai.requests) == 1


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
