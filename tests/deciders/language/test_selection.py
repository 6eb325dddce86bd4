"""Selection by a model with tools in words: calls are parsed from its text, and corrected once."""

import json

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from support.openai_models import model_at, source_of
from support.packets import CONTEXT, FILES, done, packet
from support.prompts import call, last, selection, sent, system
from support.scripted_openai import ScriptedOpenAI
from support.scripted_replies import Token, Tokens

from packetgate.deciders.advice import Advisers
from packetgate.deciders.language.selection import select_by_model
from packetgate.models.model import Model
from packetgate.models.openai.compatible import OpenAICompatible
from packetgate.models.options import ModelOptions
from packetgate.models.pool import ModelSource
from packetgate.models.thoughts import DEFAULT_TOKEN_LIMIT
from packetgate.plugins import installed
from packetgate.state.context import RoutingContext
from packetgate.state.routing import Correction
from packetgate.state.sections import DataField

ASK = packet("Read a.txt")
READ = call("files.read_file", path="a.txt")


@pytest.fixture
def model(scripted_openai: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch) -> ModelSource:
    """A chat model that gets tools only in words."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")

    async def source() -> OpenAICompatible:
        return await model_at(scripted_openai, options=ModelOptions(native_tools=False))

    return source


async def select(model: ModelSource, given=ASK, context: RoutingContext = CONTEXT):
    return await select_by_model(model, given, FILES, context)


async def test_the_prompt_has_the_tools_in_words_and_the_request(model: ModelSource, scripted_openai: ScriptedOpenAI):
    scripted_openai.script(READ)
    context = RoutingContext(selection_temperature=0.2, selection_top_p=0.8, selection_max_tokens=99)
    await select(model, context=context)
    request = scripted_openai.requests[0]
    assert (request["temperature"], request["top_p"], request["max_tokens"]) == (0.2, 0.8, 99 + DEFAULT_TOKEN_LIMIT)
    assert not {"tools", "tool_choice", "parallel_tool_calls", "response_format"} & request.keys()
    for name in ("ask_user", *(one.listed_name for one in FILES.values())):
        assert f'{{"name":"{name}","description":' in system(scripted_openai)
    assert [role for role, _ in sent(scripted_openai)] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert last(scripted_openai).startswith("Read a.txt\n\n(It is ")


async def test_calls_and_results_are_plain_text_in_alternating_roles(
    model: ModelSource, scripted_openai: ScriptedOpenAI
):
    made = [done("files.read_file", path=path) for path in ("a.txt", "b.txt")]
    values = [
        {"tool": one.tool_name, "success": True, "status": "executed", "output": f"in {one.params['path']}"}
        for one in made
    ]
    results = tuple(
        DataField(key=f"tool_result:{one.call_id}", type="tool_execution_result", source="x", value=value)
        for one, value in zip(made, values, strict=True)
    )
    scripted_openai.script("Both are read.")
    await select(model, packet("Read a.txt and b.txt", *made, data=results))
    (_, asked), (role, results_text) = sent(scripted_openai)[-2:]
    assert asked.count("<tool_call>") == 2
    assert (role, results_text.count("<tool_response>")) == ("user", 2)
    assert "in a.txt" in results_text
    assert "in b.txt" in results_text


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
        ('<tool_call>{"name": "files__read_file", "arguments": {"path": ', "invalid_value", "breaks off within"),
        ('<tool_call>{"name": "files__read_file"; path}</tool_call>', "invalid_value", "the JSON is invalid near"),
        ('{"name": "files__read_file", "arguments": {"path" "a.txt"}}', "invalid_value", "the JSON is invalid near"),
        ("<tool_call>files__read_file a.txt</tool_call>", "invalid_value", "is not JSON with a tool name"),
    ],
)
async def test_invalid_calls_are_corrected_once(
    model: ModelSource, scripted_openai: ScriptedOpenAI, wrong: str, problem: str, says: str
):
    scripted_openai.script(wrong, READ)
    chosen = await select(model)
    assert [(one.tool_name, one.params) for one in chosen.calls] == [("files.read_file", {"path": "a.txt"})]
    assert chosen.corrections[0].problem == problem
    assert len(scripted_openai.requests) == 2
    assert sent(scripted_openai)[-2][0] == "assistant"
    assert says in last(scripted_openai)
    assert chosen.corrections[0].message in last(scripted_openai)


EXAMPLE = json.dumps({"name": "get_weather", "arguments": {"city": "Paris"}})


@pytest.mark.parametrize(
    "text",
    [
        f"A call is an object such as {EXAMPLE} with a name.",
        f"It looks like this:\n```json\n{EXAMPLE}\n```",
        f"```json\n{EXAMPLE}\n```\nis a call.",
        'An object is written {"a": {"b": 1}}.',
    ],
)
async def test_json_in_an_answer_is_no_call(model: ModelSource, scripted_openai: ScriptedOpenAI, text: str):
    scripted_openai.script(text)
    chosen = await select(model, packet("What does a tool call look like?"))
    assert (chosen.action, chosen.calls, len(scripted_openai.requests)) == ("none", (), 1)


@pytest.mark.reflex
async def test_a_needed_call_is_asked_for_in_words(model: ModelSource, scripted_openai: ScriptedOpenAI):
    unsure = Token("Sure", {"Sure": 0.52, "<tool_call>": 0.48})
    scripted_openai.script(Tokens.of(unsure, "!"), READ)
    chosen = await select_by_model(model, ASK, FILES, CONTEXT, advisers=Advisers.of(installed()))
    assert [one.params for one in chosen.calls] == [{"path": "a.txt"}]
    first, second = (sent(scripted_openai, number) for number in (0, 1))
    assert first[:-1] == second[:-1]
    assert second[-1][1] == f"{first[-1][1]}\n(Answer with the call of a tool.)"


async def test_a_model_of_langchain_without_tools_is_offered_them_in_words():
    written = '<tool_call>{"name": "files__read_file", "arguments": {"path": "a.txt"}}</tool_call>'
    model = Model(GenericFakeChatModel(messages=iter([AIMessage(written)])))
    assert [one.params for one in (await select(source_of(model))).calls] == [{"path": "a.txt"}]


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
    scripted_openai.script(READ)
    await select(model, given)
    assert "Corrections:\n- There is no tool `x`." in last(scripted_openai)
    assert repair.message not in last(scripted_openai)
    assert "Nearest tools: files.read_file, files.write_file" in last(scripted_openai)
