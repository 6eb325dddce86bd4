"""What an OpenAI-compatible server is asked with, and how its answers are read."""

import json
from typing import Any

import pytest
from support.openai_models import GOOD, VERDICT, ask, called, means, model_at
from support.scripted_openai import ScriptedOpenAI
from support.scripted_replies import HttpError, Message

from packetgate.models.schemas import AnswerForm, obj, text

CITY = {"type": "object", "properties": {"city": {"type": "string", "pattern": "^(?!x)"}}, "required": ["city"]}
WITH_PARTS = AnswerForm("selection", obj(params={"$ref": "#/$defs/weather"}), {"weather": CITY})
BERN = '{"params":{"city":"Bern"}}'


async def test_the_strongest_means_first(scripted_openai: ScriptedOpenAI):
    scripted_openai.script(GOOD)
    answer = await ask(await model_at(scripted_openai))
    assert (answer.text, answer.held_by, answer.cut_off) == (GOOD, "json_schema", False)
    assert answer.usage.output_tokens == 1
    (sent,) = scripted_openai.requests
    assert sent["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "verdict", "strict": True, "schema": VERDICT},
    }
    assert (sent["logprobs"], sent["top_logprobs"]) == (True, 20)
    assert (sent["temperature"], sent["top_p"], sent["max_tokens"], sent["stream"]) == (0.2, 0.9, 50, False)
    assert "tools" not in sent


async def test_a_tool_call_is_forced_and_read(scripted_openai: ScriptedOpenAI):
    scripted_openai.refuses = {"response_format": HttpError(400, param="response_format")}
    scripted_openai.script(called(GOOD))
    answer = await ask(await model_at(scripted_openai))
    assert (answer.text, answer.held_by, answer.choices) == (GOOD, "tool_call", ())
    sent = scripted_openai.requests[-1]
    assert sent["tools"] == [{"type": "function", "function": {"name": "verdict", "parameters": VERDICT}}]
    assert sent["tool_choice"] == {"type": "function", "function": {"name": "verdict"}}
    assert "logprobs" not in sent


@pytest.mark.parametrize("arguments", ['{"approved":true,', "", "approve it"])
async def test_broken_arguments_are_told_as_they_are(scripted_openai: ScriptedOpenAI, arguments: str):
    scripted_openai.refuses = {"response_format": HttpError(400, param="response_format")}
    scripted_openai.script(called(arguments))
    answer = await ask(await model_at(scripted_openai))
    assert answer.text in {arguments, "{}"}
    assert answer.held_by == "tool_call"


@pytest.mark.parametrize("arguments", [json.loads(GOOD), json.dumps(GOOD)], ids=["an object", "encoded twice"])
async def test_arguments_are_read_however_they_are_encoded(scripted_openai: ScriptedOpenAI, arguments: Any):
    scripted_openai.refuses = {"response_format": HttpError(400, param="response_format")}
    scripted_openai.script(called(arguments))
    assert json.loads((await ask(await model_at(scripted_openai))).text) == json.loads(GOOD)


@pytest.mark.parametrize(("content", "finish", "read"), [
    (None, "stop", GOOD), ("", "stop", GOOD), (None, "length", ""), ("{}", "stop", "{}"),
])  # fmt: skip
async def test_an_answer_that_the_server_takes_for_a_thought_is_read(
    scripted_openai: ScriptedOpenAI, content: str | None, finish: str, read: str
):
    scripted_openai.script(Message({"content": content, "reasoning_content": GOOD}, finish))
    assert (await ask(await model_at(scripted_openai))).text == read


@pytest.mark.parametrize(
    "ignoring", ["Certainly!", f"```json\n{GOOD}\n```", '{"approved":"yes","confidence":1,"reason":""}', "{}", ""]
)
async def test_a_server_that_only_seems_to_take_a_schema(scripted_openai: ScriptedOpenAI, ignoring: str):
    model = await model_at(scripted_openai)
    scripted_openai.script(ignoring, ignoring, "I'd rather talk.", GOOD, GOOD)
    answers = [await ask(model) for _ in range(5)]
    assert means(scripted_openai) == ["json_schema", "json_object+schema", "tool_call", "json_object", "json_object"]
    assert [answer.held_by for answer in answers] == ["prompt", "prompt", "prompt", "json_object", "json_object"]
    assert answers[0].text == ignoring


WHOLE = '{"approved":true,"confidence":%s,"reason":""}'


@pytest.mark.parametrize("fine", [WHOLE % "7", WHOLE % "1e999", '{"approved":true,"reason":"xxxx'])
async def test_limits_and_answers_cut_off_are_no_sign_of_that(scripted_openai: ScriptedOpenAI, fine: str):
    model = await model_at(scripted_openai)
    scripted_openai.script(Message({"content": fine}, "stop" if fine.endswith("}") else "length"), GOOD)
    assert (await ask(model)).cut_off is not fine.endswith("}")
    await ask(model)
    assert means(scripted_openai) == ["json_schema"] * 2


async def test_openai_is_asked_strictly_where_its_subset_allows(scripted_openai: ScriptedOpenAI):
    model = await model_at(scripted_openai, is_openai=True)
    scripted_openai.script(GOOD, BERN, "Hm.", GOOD)
    await ask(model)
    await ask(model, WITH_PARTS)
    await ask(model)
    await ask(model)
    strict, open_, *_ = [request["response_format"]["json_schema"] for request in scripted_openai.requests]
    assert strict["strict"] is True
    assert strict["schema"]["properties"]["reason"] == {"type": "string"}
    assert strict["schema"]["properties"]["confidence"] == {"type": "number"}
    assert "strict" not in open_
    assert open_["schema"]["properties"]["params"] == {"type": "object"}
    assert means(scripted_openai) == ["json_schema"] * 4


async def test_openai_takes_no_alternatives_at_the_outermost_place(scripted_openai: ScriptedOpenAI):
    model = await model_at(scripted_openai, is_openai=True)
    form = AnswerForm(
        "selection", {"anyOf": [obj(action={"const": "call"}, tool=text(9)), obj(action={"const": "no"})]}
    )
    scripted_openai.script('{"action":"no"}')
    assert (await ask(model, form)).held_by == "json_object"
    assert scripted_openai.requests[0]["response_format"] == {"type": "json_object"}


async def test_calls_that_nobody_asked_for_are_read_beside_an_empty_text(scripted_openai: ScriptedOpenAI):
    scripted_openai.script(called(BERN))
    other = AnswerForm("selection", obj(city=text(80)))
    answer = await ask(await model_at(scripted_openai), other)
    assert json.loads(answer.text) == {"tool_calls": [{"name": "verdict", "arguments": json.loads(BERN)}]}
