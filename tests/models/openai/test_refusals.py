"""How a server's refusals are met: by asking for less, which is remembered, or by telling of them."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest
from support.openai_models import GOOD, ask, asked_with, called, means, model_at
from support.scripted_openai import ScriptedOpenAI
from support.scripted_replies import HttpError

from packetgate.state.errors import DecisionError


@dataclass(frozen=True)
class Server:
    """A kind of server, by what it says when it is asked for too much, and what it ends up being asked with."""

    name: str
    refuses: dict[str, HttpError]
    means: str
    top_logprobs: int = 20
    without: frozenset[str] = field(default_factory=frozenset)


def refusal(feature: str, status: int, message: str, **more: Any) -> dict[str, HttpError]:
    return {feature: HttpError(status, message, **more)}


FORMAT_SAID = "This response_format type is unavailable now"
EXTRA = [{"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs"} for name in ("logprobs",)]
NO_SCHEMA = refusal("response_format.schema", 400, "Unknown parameter: 'response_format.schema'.")
SERVERS = [
    Server("takes all", {}, "json_schema"),
    Server("no json_schema", refusal("response_format.json_schema", 400, FORMAT_SAID), "json_object+schema"),
    Server("the same with 422", refusal("response_format.json_schema", 422, FORMAT_SAID), "json_object+schema"),
    Server(
        "the same with 500",
        refusal("response_format.json_schema", 500, "response_format type must be text or json_object"),
        "json_object+schema",
    ),
    Server("no formats", refusal("response_format", 400, "unknown field"), "tool_call", 0),
    Server(
        "no formats and no tools",
        refusal("response_format", 400, "no", param="response_format")
        | refusal("tools", 404, "No endpoints found that support tool use"),
        "prompt",
    ),
    Server(
        "only plain json_object",
        refusal("response_format.json_schema", 400, FORMAT_SAID)
        | NO_SCHEMA
        | refusal("tool_choice", 400, "The model does not support tool_choice"),
        "json_object",
    ),
    Server(
        "an error without an error object",
        {"response_format.json_object": HttpError(400, body={"error": "'response_format.type' must be 'json_schema'"})}
        | {"response_format.json_schema": HttpError(400, body={"detail": [{"loc": ["body", "response_format"]}]})},
        "tool_call",
    ),
    Server("no logprobs", refusal("logprobs", 400, "no", param="logprobs"), "json_schema", 0),
    Server("no logprobs for this key", refusal("logprobs", 403, "You may not request logprobs"), "json_schema", 0),
    Server("no logprobs, 500", refusal("logprobs", 500, "logprobs is not supported here"), "json_schema", 0),
    Server("extra fields", {"logprobs": HttpError(422, body={"message": {"detail": EXTRA}})}, "json_schema", 0),
    Server(
        "few logprobs",
        refusal("top_logprobs.20", 400, "top_logprobs must be between 0 and 5"),
        "json_schema",
        5,
    ),
    Server("says nothing of use", refusal("response_format.json_schema", 400, "Bad Request"), "json_object+schema"),
    Server(
        "reasons",
        refusal("logprobs", 400, "Unsupported", param="logprobs")
        | refusal("temperature", 400, "Only the default (1) value is supported", param="temperature")
        | refusal("top_p", 400, "'top_p' is not supported with this model"),
        "json_schema",
        0,
        frozenset({"temperature", "top_p"}),
    ),
]


@pytest.mark.parametrize("server", SERVERS, ids=lambda server: server.name)
async def test_steps_down_and_remembers(server: Server, scripted_openai: ScriptedOpenAI):
    model = await model_at(scripted_openai)
    scripted_openai.refuses = server.refuses
    reply = called(GOOD) if server.means == "tool_call" else GOOD
    scripted_openai.script(reply, reply)
    assert (await ask(model)).text == GOOD
    tried = len(scripted_openai.requests)
    assert (await ask(model)).text == GOOD
    (last,) = scripted_openai.requests[tried:]
    assert asked_with(last) == server.means
    if server.means != "tool_call":
        assert last.get("top_logprobs", 0) == server.top_logprobs
        assert last.get("logprobs", False) is (server.top_logprobs > 0)
    assert not server.without & last.keys()


@dataclass(frozen=True)
class Failure:
    """An error that has nothing to do with what the request asks for."""

    error: HttpError
    requests: int


FAILURES = [
    Failure(HttpError(400, "too many", code="context_length_exceeded"), 1),
    Failure(HttpError(400, "This model's maximum context length is 4096 tokens; you asked for schema and tools"), 1),
    Failure(HttpError(400, "the request exceeds the available context size"), 1),
    Failure(HttpError(401, "response_format"), 1),
    Failure(HttpError(429, "tools"), 1),
    Failure(HttpError(404, "The model `scripted` does not exist"), 1),
    Failure(HttpError(500, "out of memory"), 1),
    Failure(HttpError(400, "Bad Request"), 7),
    Failure(HttpError(422, "unknown field"), 7),
]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: f"{failure.error.status} {failure.error.message}")
async def test_other_errors_are_told_and_leave_nothing_behind(failure: Failure, scripted_openai: ScriptedOpenAI):
    model = await model_at(scripted_openai)
    scripted_openai.refuses = {"messages": failure.error}
    with pytest.raises(DecisionError, match=f"HTTP {failure.error.status}"):
        await ask(model)
    assert len(scripted_openai.requests) == failure.requests
    scripted_openai.refuses = {}
    scripted_openai.script(GOOD)
    assert (await ask(model)).held_by == "json_schema"
    assert scripted_openai.requests[-1]["top_logprobs"] == 20


async def test_what_fails_after_a_refusal_is_told_itself(scripted_openai: ScriptedOpenAI):
    model = await model_at(scripted_openai)
    scripted_openai.refuses = refusal("response_format.json_schema", 400, FORMAT_SAID)
    scripted_openai.script(HttpError(429, "slow down"))
    with pytest.raises(DecisionError, match=r"HTTP 429.*slow down"):
        await ask(model)
    scripted_openai.script(GOOD)
    await ask(model)
    assert means(scripted_openai) == ["json_schema", "json_object+schema"] * 2


async def test_several_at_once_learn_the_same(scripted_openai: ScriptedOpenAI):
    model = await model_at(scripted_openai)
    scripted_openai.refuses = refusal("response_format.json_schema", 400, FORMAT_SAID)
    scripted_openai.script(*[GOOD] * 9)
    answers = await asyncio.gather(*(ask(model) for _ in range(8)))
    assert {answer.held_by for answer in answers} == {"json_object"}
    before = len(scripted_openai.requests)
    await ask(model)
    assert means(scripted_openai)[before:] == ["json_object+schema"]
