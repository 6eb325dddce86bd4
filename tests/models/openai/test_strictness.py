"""What a server refuses of one form is left out of that one; other forms are held as strictly as before."""

from dataclasses import replace

import pytest
from support.openai_models import FORM, GOOD, ask, asked_with, called, model_at
from support.scripted_openai import ScriptedOpenAI
from support.scripted_replies import HttpError

from packetgate.models.schemas import AnswerForm, Choice, obj

PATTERN = {"type": "string", "pattern": "^x$"}
PICKY = AnswerForm("other", obj(code=PATTERN), choices=(Choice.among("code", values=["x"]),))
GOOD_CODE = '{"code":"x"}'


def asked(server: ScriptedOpenAI, since: int = 0) -> list[str]:
    """Return what was asked with, since then: strictness and limits as well."""
    found = []
    for request in server.requests[since:]:
        told = request.get("response_format", {}).get("json_schema", {})
        strict = "+strict" if told.get("strict") else ""
        limits = "+limits" if "pattern" in str(told) or "maxLength" in str(told) else ""
        found.append(asked_with(request) + strict + limits)
    return found


async def test_a_keyword_of_one_schema_that_is_refused(scripted_openai: ScriptedOpenAI):
    model = await model_at(scripted_openai)
    said = HttpError(400, "Invalid schema for response_format 'other': 'pattern' is not permitted.")
    scripted_openai.refuses = {"schema.pattern": said}
    scripted_openai.script(called(GOOD_CODE), called(GOOD_CODE), GOOD)
    assert [(await ask(model, PICKY)).held_by for _ in range(2)] == ["tool_call"] * 2
    assert asked(scripted_openai)[0] == "json_schema+strict+limits"
    assert asked(scripted_openai)[-2:] == ["tool_call"] * 2
    await ask(model)
    assert asked(scripted_openai)[-1] == "json_schema+strict+limits"
    assert "logprobs" in scripted_openai.requests[-1]


@pytest.mark.parametrize("status", [400, 422])
async def test_strictness_that_is_refused(status: int, scripted_openai: ScriptedOpenAI):
    model = await model_at(scripted_openai)
    scripted_openai.refuses = {"response_format.strict": HttpError(status, "json_schema.strict: Extra inputs")}
    scripted_openai.script(*[GOOD] * 3)
    for _ in range(3):
        await ask(model)
    assert asked(scripted_openai) == ["json_schema+strict+limits", *["json_schema+limits"] * 3]


async def test_openai_that_refuses_it_of_one_schema_keeps_it_for_others(scripted_openai: ScriptedOpenAI):
    model = await model_at(scripted_openai, is_openai=True)
    said = "Invalid schema for response_format 'other': schema must not have a property 'code'."
    scripted_openai.refuses = {"schema.code": HttpError(400, said, param="response_format")}
    form = replace(PICKY, body=obj(code={"type": "string"}))
    scripted_openai.script(GOOD, called(GOOD_CODE), GOOD)
    await ask(model)
    assert (await ask(model, form)).held_by == "tool_call"
    assert asked(scripted_openai) == [
        *["json_schema+strict"] * 2,
        *("json_schema", "json_object+schema", "tool_call"),
    ]
    await ask(model)
    assert asked(scripted_openai)[-1] == "json_schema+strict"


async def test_formats_that_are_refused_altogether(scripted_openai: ScriptedOpenAI):
    model = await model_at(scripted_openai)
    scripted_openai.refuses = {
        name: HttpError(400, f"Unknown parameter: '{name}'", param=name) for name in ("response_format", "tools")
    }
    scripted_openai.script(*[GOOD] * 3)
    for _ in range(2):
        assert (await ask(model)).held_by == "prompt"
    walked = len(scripted_openai.requests) - 2
    assert walked == 5
    assert asked(scripted_openai)[walked:] == ["prompt"] * 2
    assert (await ask(model, replace(FORM, body=FORM.body | {"title": "again"}))).held_by == "prompt"


@pytest.mark.parametrize(
    "said",
    [
        "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.",
        "This response_format type is unavailable now",
        "[{'type': 'literal_error', 'loc': ('body', 'response_format', 'type'), 'msg': 'Input should be text'}]",
    ],
)
async def test_a_type_that_is_refused_is_not_tried_in_other_ways(said: str, scripted_openai: ScriptedOpenAI):
    model = await model_at(scripted_openai)
    scripted_openai.refuses = {"response_format.json_schema": HttpError(400, said)}
    scripted_openai.script(GOOD, GOOD)
    assert [(await ask(model)).held_by for _ in range(2)] == ["json_object"] * 2
    assert asked(scripted_openai) == ["json_schema+strict+limits", *["json_object+schema"] * 2]


async def test_a_tool_call_that_is_all_there_is(scripted_openai: ScriptedOpenAI):
    model = await model_at(scripted_openai)
    scripted_openai.refuses = {"response_format": HttpError(400, param="response_format")}
    scripted_openai.script(*[called(GOOD)] * 2)
    assert [(await ask(model)).held_by for _ in range(2)] == ["tool_call"] * 2
