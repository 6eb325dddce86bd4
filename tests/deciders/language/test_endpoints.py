"""Selection through an endpoint that accepts tools: the endpoint's calls, and its text as the turn's answer."""

import re
from typing import Any

import pytest
from support.openai_models import model_at, source_of
from support.packets import CONTEXT, FILES, done, packet
from support.prompts import call, offered, selection, sent, system
from support.scripted_openai import ScriptedOpenAI
from support.scripted_replies import HttpError, Message, Token, Tokens, tool_calls

from packetgate.deciders.advice import Advisers
from packetgate.deciders.choosing import language_deciders
from packetgate.deciders.language.prompting import ASK
from packetgate.deciders.language.selection import select_by_model
from packetgate.deciders.protocols import Selection
from packetgate.models.model import Model
from packetgate.models.openai.compatible import OpenAICompatible
from packetgate.models.options import ModelOptions
from packetgate.models.thoughts import DEFAULT_TOKEN_LIMIT
from packetgate.plugins import installed
from packetgate.state.context import RoutingContext
from packetgate.state.errors import DecisionError
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import Correction
from packetgate.state.sections import DataField

READ = call("files.read_file", path="a.txt")
NO_TOOLS = HttpError(400, "scripted does not support tools")


@pytest.fixture
async def served(scripted_openai: ScriptedOpenAI) -> OpenAICompatible:
    return await model_at(scripted_openai)


async def select(
    model: Model, request: str | CognitionPacket = "Read a.txt", context: RoutingContext = CONTEXT
) -> Selection:
    source, given = source_of(model), packet(request) if isinstance(request, str) else request
    return await select_by_model(source, given, FILES, context, prime=source)


async def test_the_request_has_tools_sampling_and_prompt(served: OpenAICompatible, scripted_openai: ScriptedOpenAI):
    scripted_openai.script(READ)
    context = CONTEXT.model_copy(
        update={"selection_temperature": 0.2, "selection_top_p": 0.8, "answer_max_tokens": 900, "max_parallel_calls": 1}
    )
    await select(served, context=context)
    (request,) = scripted_openai.requests
    assert (request["temperature"], request["top_p"], request["max_tokens"]) == (0.2, 0.8, 900 + DEFAULT_TOKEN_LIMIT)
    assert (request["tool_choice"], request["parallel_tool_calls"]) == ("auto", False)
    assert "response_format" not in request
    tools = offered(scripted_openai)
    assert tools.keys() == {one.listed_name for one in FILES.values()} | {ASK}
    assert tools["files__read_file"]["description"] == FILES["files.read_file"].full
    assert tools["files__read_file"]["parameters"]["required"] == ["path"]
    assert "You are Packetgate" in system(scripted_openai)
    role, text = sent(scripted_openai)[-1]
    assert role == "user"
    assert re.fullmatch(r"Read a\.txt\n\n\(It is \w+day \d{4}-\d\d-\d\d \d\d:\d\d \S+, UTC[+-]\d\d:\d\d\.\)", text)


@pytest.mark.reflex
async def test_a_needed_call_is_required_with_the_same_tools(served: OpenAICompatible, scripted_openai: ScriptedOpenAI):
    source, unsure = source_of(served), Token("Sure", {"Sure": 0.52, "<tool_call>": 0.48})
    scripted_openai.script(Tokens.of(unsure, "!"), READ)
    advisers = Advisers.of(installed())
    chosen = await select_by_model(source, packet("Read a.txt"), FILES, CONTEXT, prime=source, advisers=advisers)
    assert [one.params for one in chosen.calls] == [{"path": "a.txt"}]
    first, second = scripted_openai.requests
    assert [one["tool_choice"] for one in (first, second)] == ["auto", "required"]
    assert first["tools"] == second["tools"]


async def test_text_of_a_model_other_than_prime_is_not_the_answer(
    served: OpenAICompatible, scripted_openai: ScriptedOpenAI
):
    scripted_openai.script("Paris.")
    lite, prime = source_of(served), source_of(await model_at(scripted_openai))
    chosen = await select_by_model(lite, packet("What is the capital of France?"), FILES, CONTEXT, prime=prime)
    assert (chosen.action, chosen.text) == ("none", "")
    assert scripted_openai.requests[0]["max_tokens"] == CONTEXT.selection_max_tokens + DEFAULT_TOKEN_LIMIT


@pytest.mark.parametrize(
    ("reply", "action", "expected"),
    [
        (selection("clarify", question=" Which file? "), "clarify", "Which file?"),
        (selection("clarify", question=" "), "none", ""),
        (selection("describe", tools=["files.read_file"]), "describe", ("files.read_file",)),
        (selection("describe", tools="files.read_file"), "describe", ("files.read_file",)),
    ],
)
@pytest.mark.parametrize("native", [True, False])
async def test_the_tools_to_ask_and_to_show_are_decisions(
    scripted_openai: ScriptedOpenAI, reply: str, action: str, expected: Any, native: bool
):
    scripted_openai.script(reply)
    chosen = await select(await model_at(scripted_openai, options=ModelOptions(native_tools=native)))
    assert (chosen.action, chosen.needs_tool) == (action, True)
    assert expected in (chosen.question, chosen.tool_names)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ('{"path": ', "cannot be read: its arguments must be one JSON object. The error: it is not JSON: "),
        ('{"path": ["a.txt"]}', "cannot take this value of `path`"),
        ('{"file": "a.txt"}', "has no parameter `file`"),
        ("{}", "needs `path`: it is missing."),
    ],
)
async def test_an_invalid_call_is_corrected_once(
    served: OpenAICompatible, scripted_openai: ScriptedOpenAI, arguments: str, message: str
):
    wrong = tool_calls(("files__read_file", arguments))
    scripted_openai.script(wrong, READ)
    chosen = await select(served)
    assert [one.params for one in chosen.calls] == [{"path": "a.txt"}]
    assert message in sent(scripted_openai)[-1][1]
    assert message in chosen.corrections[0].message
    scripted_openai.script(wrong, wrong)
    with pytest.raises(DecisionError):
        await select(served)


@pytest.mark.parametrize(
    "reply",
    [
        tool_calls(("files.read_file", '{"path": "a.txt"}')),
        tool_calls(("read_file", '{"path": "a.txt"}')),
        '<tool_call>{"name": "files__read_file", "arguments": {"path": "a.txt"}}</tool_call>',
        Message(
            {"content": "", "reasoning_content": '<tool_call>{"name": "read_file", "arguments": {"path": "a.txt"}}'}
        ),
    ],
    ids=["its own name", "without the server", "in the text", "in the thought"],
)
async def test_calls_in_other_forms_are_read(served: OpenAICompatible, scripted_openai: ScriptedOpenAI, reply: Any):
    scripted_openai.script(reply)
    (one,) = (await select(served)).calls
    assert one.checked
    assert (one.tool_name, one.checked.params) == ("files.read_file", {"path": "a.txt"})


async def test_a_tool_that_was_not_offered_widens_the_palette(
    served: OpenAICompatible, scripted_openai: ScriptedOpenAI
):
    scripted_openai.script(call("files.shred_file", path="a.txt"))
    chosen = await select(served)
    assert [one.tool_name for one in chosen.calls] == ["files__shred_file"]
    assert chosen.calls[0].checked is not None
    assert chosen.calls[0].checked.is_tool_miss


async def test_results_come_back_as_tool_messages(served: OpenAICompatible, scripted_openai: ScriptedOpenAI):
    scripted_openai.script("It says apples.")
    note = Correction(tool_name="x", problem="unknown_tool", message="There is no tool `x`.")
    made = done("files.read_file", path="a.txt")
    value = {"tool": made.tool_name, "success": True, "status": "executed", "output": "apples"}
    result = DataField(key=f"tool_result:{made.call_id}", type="tool_execution_result", source="x", value=value)
    given = packet("Read a.txt", made, data=(result,), corrections=(note,))
    assert (await select(served, given)).text == "It says apples."
    *_, user, asked, answered = scripted_openai.requests[0]["messages"]
    assert "There is no tool `x`." in user["content"]
    (sent_call,) = asked["tool_calls"]
    assert sent_call["function"]["name"] == "files__read_file"
    assert sent_call["id"] == answered["tool_call_id"] == made.call_id[:9]
    assert "apples" in answered["content"]


async def test_a_truncated_answer_is_not_used(served: OpenAICompatible, scripted_openai: ScriptedOpenAI):
    scripted_openai.script(Message({"content": "It is a long"}, "length"))
    assert (await select(served, "Tell me a story")).text == ""
    scripted_openai.script(tool_calls(("files__read_file", '{"path": "a'), finish_reason="length"))
    with pytest.raises(DecisionError):
        await select(served)


async def test_a_server_that_refuses_tools_gets_them_in_words(
    served: OpenAICompatible, scripted_openai: ScriptedOpenAI
):
    scripted_openai.refuses = {"tool_choice": NO_TOOLS}
    scripted_openai.script(READ, READ, "Paris.")
    for _ in range(2):
        chosen = await select(served)
        assert [one.params for one in chosen.calls] == [{"path": "a.txt"}]
    assert (await select(served, "What is the capital of France?")).text == "Paris."
    assert ["tools" in one for one in scripted_openai.requests] == [True, True, False, False, False]
    assert not served.uses_tool_calling


async def test_another_error_does_not_mean_that_tools_are_refused(
    served: OpenAICompatible, scripted_openai: ScriptedOpenAI
):
    scripted_openai.refuses = {"messages": HttpError(400, "no credit left")}
    for _ in range(3):
        with pytest.raises(DecisionError, match="no credit left"):
            await select(served)
    assert served.uses_tool_calling


async def test_text_without_a_call_is_the_answer(served: OpenAICompatible, scripted_openai: ScriptedOpenAI):
    scripted_openai.script("Paris.")
    given = packet("What is the capital of France?")
    deciders = language_deciders(source_of(served), source_of(served))
    chosen = await deciders.selector(given, FILES, CONTEXT)
    assert (chosen.action, chosen.needs_tool, chosen.text) == ("none", False, "Paris.")
    answered = given.model_copy(update={"response": given.response.model_copy(update={"candidate": chosen.text})})
    answer = await deciders.responder(answered, FILES, CONTEXT)
    assert (answer.text, answer.decided_by) == ("Paris.", "model")
    assert len(scripted_openai.requests) == 1
