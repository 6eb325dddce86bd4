"""A parameter that a server refuses: ours is left out from then on, the user's is told with the place it was set at."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from support.openai_models import GOOD, SAMPLING, ask, model_at
from support.scripted_openai import ScriptedOpenAI
from support.scripted_replies import HttpError

from packetgate.models.model import Model
from packetgate.models.model import ask as ask_for_words
from packetgate.models.options import ModelOptions
from packetgate.models.requests import collected
from packetgate.models.transport import named_errors
from packetgate.state.errors import DecisionError

Asking = Callable[[Any], Awaitable[object]]


async def words(model: Model) -> object:
    return await ask_for_words(model.chat, [HumanMessage("Speak.")], model.sampling(**SAMPLING))


async def streamed(model: Model) -> object:
    with named_errors(model.chat):
        return [chunk async for chunk in model.chat.astream("Speak.", **model.sampling(**SAMPLING))]


async def in_form(model: Any) -> object:
    return await ask(model)


ASKED: list[Asking] = [in_form, words, streamed]
UNSUPPORTED = (
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
)


@dataclass(frozen=True)
class Ours:
    """Parameters that nobody wished for, how they are refused, and what is sent instead."""

    refuses: dict[str, HttpError]
    sent: dict[str, Any]


OURS = [
    Ours({"temperature": HttpError(400, "Only the default (1) is supported", param="temperature")}, {"top_p": 0.9}),
    Ours({"top_p": HttpError(422, body={"detail": [{"loc": ["body", "top_p"], "msg": "no"}]})}, {"temperature": 0.2}),
    Ours({"temperature": HttpError(400, "`temperature` and `top_p` cannot both be specified")}, {"top_p": 0.9}),
    Ours(
        {name: HttpError(400, f"Unknown parameter: '{name}'.", param=name) for name in ("temperature", "top_p")},
        {"max_tokens": 50},
    ),
    Ours({"max_tokens": HttpError(400, UNSUPPORTED, param="max_tokens")}, {"max_completion_tokens": 50}),
    Ours({"max_tokens": HttpError(400, UNSUPPORTED)}, {"max_completion_tokens": 50}),
]


@pytest.mark.parametrize("asking", ASKED)
@pytest.mark.parametrize("case", OURS, ids=lambda case: "+".join(case.refuses))
async def test_ours_is_left_out_once_and_for_all(case: Ours, asking: Asking, scripted_openai: ScriptedOpenAI):
    model = await model_at(scripted_openai)
    scripted_openai.refuses = case.refuses
    scripted_openai.script(*[GOOD] * 3)
    for _ in range(3):
        await asking(model)
    assert len(scripted_openai.requests) == len(case.refuses) + 3
    for request in scripted_openai.requests[-3:]:
        assert not case.refuses.keys() & request.keys()
        assert case.sent.items() <= request.items()


@pytest.mark.parametrize("asking", ASKED)
@pytest.mark.parametrize("said", ["max_tokens must be at least 1024", "max_tokens is too large: 50"])
async def test_a_length_that_is_refused_is_no_reason_to_send_none(
    said: str, asking: Asking, scripted_openai: ScriptedOpenAI
):
    model = await model_at(scripted_openai)
    scripted_openai.refuses = {"max_tokens": HttpError(400, said, param="max_tokens")}
    with pytest.raises(DecisionError, match=said):
        await asking(model)
    assert all(request["max_tokens"] == 50 for request in scripted_openai.requests)


@pytest.mark.parametrize("asking", ASKED)
async def test_what_did_not_help_is_not_remembered(asking: Asking, scripted_openai: ScriptedOpenAI):
    model = await model_at(scripted_openai)
    scripted_openai.script(HttpError(400, "no", param="temperature"), HttpError(410, "gone"))
    with pytest.raises(DecisionError, match="HTTP 410"):
        await asking(model)
    scripted_openai.script(GOOD)
    await asking(model)
    assert ["temperature" in request for request in scripted_openai.requests] == [True, False, True]


@dataclass(frozen=True)
class Wish:
    """An option, the parameter it becomes, and how that is refused."""

    option: dict[str, Any]
    parameter: str
    said: HttpError
    told: str


def refusal(name: str, status: int = 400) -> HttpError:
    return HttpError(status, f"Unsupported parameter: '{name}'", param=name)


WISHES = [
    Wish({"reasoning_effort": "low"}, "reasoning_effort", refusal("reasoning_effort"), "reasoning_effort is set at"),
    Wish({"seed": 7}, "seed", refusal("seed", 422), "seed is set at"),
    Wish({"temperature": 0.0}, "temperature", refusal("temperature"), "temperature is set at"),
    Wish({"top_p": 0.5}, "top_p", HttpError(400, "top_p: Extra inputs are not permitted"), "top_p is set at"),
    Wish({"extra_body": {"top_k": 3}}, "top_k", refusal("top_k"), "extra_body.top_k is set at"),
    Wish(
        {"extra_body": {"reasoning": {"effort": "low"}}},
        "reasoning",
        HttpError(400, "no", param="reasoning.effort"),
        "extra_body.reasoning is set at",
    ),
    Wish(
        {"enable_thinking": False},
        "chat_template_kwargs",
        HttpError(400, "enable_thinking is not a known argument"),
        "enable_thinking is set at",
    ),
]


@pytest.mark.parametrize("asking", ASKED)
@pytest.mark.parametrize("wish", WISHES, ids=lambda wish: wish.parameter)
async def test_what_the_user_wants_is_never_left_out(wish: Wish, asking: Asking, scripted_openai: ScriptedOpenAI):
    name = next(iter(wish.option))
    where = f"PACKETGATE_LITE_{name.upper()}"
    model = await model_at(scripted_openai, options=ModelOptions(**wish.option), places={name: where})
    scripted_openai.refuses = {wish.parameter: wish.said}
    with pytest.raises(DecisionError, match=f"{wish.told} {where}: change it, or leave it out"):
        await asking(model)
    assert [wish.parameter in request for request in scripted_openai.requests] == [True]


async def test_what_was_not_sent_is_not_on_record(scripted_openai: ScriptedOpenAI):
    model = await model_at(scripted_openai)
    scripted_openai.refuses = OURS[0].refuses | OURS[4].refuses
    scripted_openai.script(GOOD, GOOD)
    with collected() as found:
        await words(model)
        await words(model)
    assert [one.options for one in found] == [{"top_p": 0.9, "max_tokens": 50}] * 2


async def test_a_property_of_a_schema_is_no_option(scripted_openai: ScriptedOpenAI):
    model = await model_at(scripted_openai, options=ModelOptions(seed=7))
    said = HttpError(400, "Invalid schema for response_format 'verdict': in properties 'seed': 'minimum' is not known")
    scripted_openai.script(said, GOOD)
    assert (await ask(model)).text == GOOD
    assert [request["seed"] for request in scripted_openai.requests] == [7, 7]
