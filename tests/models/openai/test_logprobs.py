"""Confidence read from the logprobs that a server sends with its answer."""

import asyncio
import json
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from support.scripted_openai import ScriptedOpenAI
from support.scripted_replies import Raw, Token, Tokens, envelope

from packetgate.models.openai.compatible import OpenAICompatible
from packetgate.models.openai.connect import connect
from packetgate.models.openai.servers import Endpoint
from packetgate.models.schemas import AnswerForm, Choice, MeasuredChoice, object_schema

FORM = AnswerForm(
    "verdict",
    object_schema(approved={"type": "boolean"}, tool={"enum": ["fs.read", "fs.write", "é"]}),
    choices=(
        Choice.from_values("approved", values=[True, False]),
        Choice.from_values("tool", values=["fs.read", "fs.write", "é"]),
    ),
)
TRUE = Token("true", {"true": 0.6, "false": 0.2, "null": 0.1, " true": 0.05})
HEAD = '{"approved":'
TAIL = ',"tool":"fs.read"}'


async def measured(server: ScriptedOpenAI, *replies: Any) -> tuple[MeasuredChoice, ...]:
    chat = await asyncio.to_thread(connect, "scripted", Endpoint(server.base_url, None, timeout=10))
    server.script(*replies)
    return (await OpenAICompatible(chat).answer([HumanMessage("Judge")], FORM, sampling={})).choices


async def test_the_chosen_token_need_not_be_listed(scripted_openai: ScriptedOpenAI):
    found = await measured(scripted_openai, Tokens.of(HEAD, Token("false", {"true": 0.5}), TAIL))
    assert found[0] == MeasuredChoice(("approved",), "false", pytest.approx(1 / 1.5))


def with_logprobs(text: str, content: Any) -> Raw:
    answer = envelope("chat.completion", "message", {"content": text}, "stop")
    answer["choices"][0]["logprobs"] = {"content": content}
    return Raw(json.dumps(answer))


def listed(*tokens: str, **more: Any) -> list[dict[str, Any]]:
    return [{"token": one, "logprob": -0.1, "top_logprobs": []} | more for one in tokens]


GOOD = HEAD + "true" + TAIL


async def test_tokens_without_bytes_are_read(scripted_openai: ScriptedOpenAI):
    found = await measured(scripted_openai, with_logprobs(GOOD, listed(HEAD, "true", TAIL)))
    assert [one.value for one in found] == ["true", '"fs.read"']


async def test_characters_split_between_tokens_are_read(scripted_openai: ScriptedOpenAI):
    text = HEAD + 'true,"tool":"é"}'
    raw = text.encode()
    content = [
        {"token": "", "bytes": [byte], "logprob": -0.5, "top_logprobs": [{"token": "", "bytes": [34], "logprob": -1}]}
        for byte in raw
    ]
    found = await measured(scripted_openai, with_logprobs(text, content))
    assert [one.value for one in found] == ["true", '"é"']


@pytest.mark.parametrize(
    "content",
    [
        *(None, [], {}, "tokens", 7, [None], [{}], [{"token": "true"}], [{"token": None, "logprob": 0}]),
        listed(HEAD, "true", TAIL, logprob=None),
        listed(HEAD, "true", TAIL, logprob="high"),
        listed(HEAD, "true", TAIL, bytes=[300]),
        listed(HEAD, "true", TAIL, top_logprobs=[{"logprob": 0}]),
        listed(HEAD, "false", ',"tool":"fs.write"}'),
        listed("Let me think: ", GOOD),
        listed(*"no JSON at all"),
        listed("", "", ""),
    ],
    ids=str,
)
async def test_missing_or_mismatched_logprobs_are_ignored(scripted_openai: ScriptedOpenAI, content: Any):
    assert await measured(scripted_openai, with_logprobs(GOOD, content)) == ()


@pytest.mark.parametrize("logprob", [5.0, -9999.0, float("nan"), float("inf"), float("-inf")])
async def test_invalid_logprobs_are_ignored(scripted_openai: ScriptedOpenAI, logprob: float):
    found = await measured(scripted_openai, with_logprobs(GOOD, listed(HEAD, "true", TAIL, logprob=logprob)))
    assert all(0 < one.probability <= 1 for one in found)


@pytest.mark.parametrize(
    "around", ["Sure: {}", "```json\n{}\n```", "<think>no</think>{}", "{} I hope", "[{}]", "{0}{0}"]
)
async def test_only_a_bare_object_is_measured(scripted_openai: ScriptedOpenAI, around: str):
    head, tail = around.replace("{}", "{0}").split("{0}", 1)
    tail = tail.replace("{0}", GOOD)
    assert await measured(scripted_openai, Tokens.of(head, HEAD, TRUE, TAIL, tail)) == ()


async def test_the_last_of_duplicate_keys_counts(scripted_openai: ScriptedOpenAI):
    text = [HEAD, "true,", '"approved":', Token("false", {"false": 0.3, "true": 0.1}), TAIL]
    found = await measured(scripted_openai, Tokens.of(*text))
    assert found[0] == MeasuredChoice(("approved",), "false", pytest.approx(0.75))


async def test_unlisted_tokens_may_have_the_lowest_listed_probability(scripted_openai: ScriptedOpenAI):
    unsure = Token("true", {"true": 0.02, "yes": 0.03, "no": 0.01})
    found = await measured(scripted_openai, Tokens.of(HEAD, unsure, TAIL))
    assert found[0].probability == pytest.approx(0.02 / 0.03)
    nearly = Token("true", {"true": 0.97, "yes": 0.02999})
    found = await measured(scripted_openai, Tokens.of(HEAD, nearly, TAIL))
    assert found[0].probability == pytest.approx(0.97 / 0.97001)
