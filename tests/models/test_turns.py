"""A turn calls an absent endpoint only once, and the errors of its requests can be collected."""

import asyncio
from dataclasses import dataclass

import pytest
from support.openai_models import GOOD, ask_tools, model_at
from support.scripted_openai import ScriptedOpenAI
from support.scripted_replies import HttpError, Reply, Stall

from packetgate.models.transport import collect_requests, one_turn
from packetgate.state.base import new_id
from packetgate.state.errors import DecisionError, NotAskedError


@dataclass(frozen=True)
class Case:
    """A server's reply, the error message, and whether a turn calls the server again."""

    name: str
    reply: Reply
    message: str
    again: bool = False


CASES = [
    Case("hangs", Stall(), "did not answer in time: raise PACKETGATE_MODEL_TIMEOUT"),
    Case("a gateway without a server", HttpError(502, "bad gateway"), "HTTP 502"),
    Case("no key", HttpError(401, "no"), "refuses the API key"),
    Case("needs a moment", HttpError(429, "slow", retry_after="0.01"), "HTTP 429", again=True),
    Case("has an internal error", HttpError(500, "boom"), "HTTP 500", again=True),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_an_absent_endpoint_is_asked_once_a_turn(case: Case, scripted_openai: ScriptedOpenAI):
    turn, model = new_id(), await model_at(scripted_openai, seconds=0.4)
    scripted_openai.script(case.reply, GOOD)
    with one_turn(turn), pytest.raises(DecisionError, match=case.message):
        await ask_tools(model)
    with one_turn(turn):
        if case.again:
            assert (await ask_tools(model)).text == GOOD
        else:
            with pytest.raises(NotAskedError, match="failed in this turn, so it was not called again"):
                await ask_tools(model)
    scripted_openai.script(GOOD)
    with one_turn(new_id()):
        assert (await ask_tools(model)).text == GOOD
    assert len(scripted_openai.requests) == 2 + case.again


async def test_the_errors_of_requests_are_collected(scripted_openai: ScriptedOpenAI) -> None:
    model = await model_at(scripted_openai)
    scripted_openai.script(HttpError(400, "the grammar of the tool is not supported"), GOOD, GOOD, GOOD)
    with collect_requests() as errors:
        await asyncio.gather(ask_tools(model))
        await ask_tools(model)
    await ask_tools(model)
    assert "HTTP 400" in errors[0]
    assert errors[1:] == ["", ""]
