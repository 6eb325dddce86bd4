"""Requests to OpenAI-compatible servers omit the parts that a server has refused before."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessageChunk, HumanMessage, ToolCallChunk
from support.openai_models import FULL, GOOD, READ, SAMPLING, SIMPLE, ask_tools, model_at, sent_schemas
from support.scripted_openai import ScriptedOpenAI
from support.scripted_replies import HttpError, Message, tool_calls

from packetgate.models.answers import join_pieces, stream, streaming_caller
from packetgate.models.model import Model, OfferedTool
from packetgate.models.model import ask_chat as ask_once
from packetgate.models.openai.compatible import OpenAICompatible
from packetgate.models.options import ModelOptions
from packetgate.models.schemas import object_schema
from packetgate.state.errors import DecisionError

Asking = Callable[[OpenAICompatible], Awaitable[object]]


async def words(model: Model) -> object:
    return await ask_once(model.chat, [HumanMessage("Speak.")], model.sampling(**SAMPLING))


async def streamed(model: Model) -> object:
    return [one async for one in stream(model.chat, [HumanMessage("Speak.")], model.sampling(**SAMPLING))]


async def one_word(model: Model) -> object:
    return await model.word_probabilities([HumanMessage("Is it?")], ("yes", "no"))


WAYS: list[Asking] = [ask_tools, words, streamed]


@pytest.mark.parametrize(
    "refusal",
    [
        HttpError(400, "Invalid schema for function 'read': 'minLength' is not permitted."),
        HttpError(500, "failed to parse the grammar"),
        HttpError(400, body={"detail": [{"loc": ["body", "tools"]}]}),
    ],
)
async def test_a_refused_schema_is_not_sent_again(scripted_openai: ScriptedOpenAI, refusal: HttpError):
    model = await model_at(scripted_openai)
    scripted_openai.refuses = {"schema.minLength": refusal}
    scripted_openai.script(*[GOOD] * 9)
    for _ in range(2):
        assert (await ask_tools(model)).text == GOOD
    assert sent_schemas(scripted_openai) == [FULL, SIMPLE, SIMPLE]
    await asyncio.gather(*(ask_tools(model) for _ in range(7)))
    assert all(one == SIMPLE for one in sent_schemas(scripted_openai)[3:])


@pytest.mark.parametrize(
    ("error", "requests"),
    [
        (HttpError(400, "too many", code="context_length_exceeded"), 1),
        (HttpError(400, "This model's maximum context length is 4096 tokens; you asked for schema and tools"), 1),
        (HttpError(401, "tools"), 1),
        (HttpError(400, "no credit left"), 2),
    ],
)
async def test_other_errors_are_not_remembered(scripted_openai: ScriptedOpenAI, error: HttpError, requests: int):
    model = await model_at(scripted_openai)
    scripted_openai.refuses = {"messages": error}
    with pytest.raises(DecisionError, match=f"HTTP {error.status}"):
        await ask_tools(model)
    assert len(scripted_openai.requests) == requests
    scripted_openai.refuses = {}
    scripted_openai.script(GOOD)
    await ask_tools(model)
    assert sent_schemas(scripted_openai)[-1] == FULL


REFUSED = [
    ({"temperature": HttpError(400, "Only the default (1) is supported", param="temperature")}, {"top_p": 0.9}),
    ({"top_p": HttpError(422, body={"detail": [{"loc": ["body", "top_p"], "msg": "no"}]})}, {"temperature": 0.2}),
    ({name: HttpError(400, f"Unknown: '{name}'") for name in ("temperature", "top_p")}, {"max_tokens": 50}),
    ({"max_tokens": HttpError(400, "Use 'max_completion_tokens' instead.")}, {"max_completion_tokens": 50}),
]


@pytest.mark.parametrize(
    ("refuses", "sent", "way"), [*((*row, ask_tools) for row in REFUSED), *((*REFUSED[2], way) for way in WAYS[1:])]
)
async def test_a_refused_parameter_is_not_sent_again(
    refuses: dict[str, HttpError], sent: dict[str, Any], way: Asking, scripted_openai: ScriptedOpenAI
):
    model = await model_at(scripted_openai)
    scripted_openai.refuses = refuses
    scripted_openai.script(*[GOOD] * 3)
    for _ in range(3):
        await way(model)
    assert len(scripted_openai.requests) == len(refuses) + 3
    for request in scripted_openai.requests[-3:]:
        assert not refuses.keys() & request.keys()
        assert sent.items() <= request.items()


@pytest.mark.parametrize(("parameter", "way"), [("logprobs", one_word), ("stream_options", streamed)])
async def test_refused_measurements_are_left_out(parameter: str, way: Asking, scripted_openai: ScriptedOpenAI):
    model = await model_at(scripted_openai)
    scripted_openai.refuses = {parameter: HttpError(422, f"body.{parameter}: Extra inputs are not permitted")}
    scripted_openai.script(GOOD, GOOD)
    for _ in range(2):
        await way(model)
    assert [parameter in request for request in scripted_openai.requests] == [True, False, False]
    assert "top_logprobs" not in scripted_openai.requests[-1]


async def test_measurements_that_only_streams_refuse_are_left_out_there(scripted_openai: ScriptedOpenAI):
    model, caller = await model_at(scripted_openai), streaming_caller("")
    refusal = HttpError(400, "logprobs is not supported with tools + stream")
    scripted_openai.refuses = {"streamed logprobs": refusal}
    scripted_openai.script(*["Hello"] * 3)
    for one in (caller, None, caller):
        await model.call([HumanMessage("Hi")], [READ], max_calls=1, sampling=SAMPLING, caller=one)
    asked = [("stream" in request and request["stream"], "logprobs" in request) for request in scripted_openai.requests]
    assert asked == [(True, True), (True, False), (False, True), (True, False)]
    assert not model.measures_streamed_calls
    scripted_openai.refuses, scripted_openai.replies[:] = {}, ["Hello"]
    other = await model_at(scripted_openai)
    await other.call([HumanMessage("Hi")], [READ], max_calls=1, sampling=SAMPLING, caller=caller)
    assert other.measures_streamed_calls


@pytest.mark.parametrize(
    ("options", "parameter"),
    [
        ({"reasoning_effort": "low"}, "reasoning_effort"),
        ({"top_p": 0.5}, "top_p"),
        ({"extra_body": {"top_k": 3}}, "top_k"),
        ({"enable_thinking": False}, "chat_template_kwargs"),
    ],
)
async def test_the_users_own_parameters_are_always_sent(
    options: dict[str, Any], parameter: str, scripted_openai: ScriptedOpenAI
):
    model = await model_at(scripted_openai, options=ModelOptions(**options))
    scripted_openai.refuses = {parameter: HttpError(400, f"Unsupported parameter: '{parameter}'", param=parameter)}
    for way in WAYS:
        with pytest.raises(DecisionError, match=parameter):
            await way(model)
    assert all(parameter in request for request in scripted_openai.requests)


async def test_large_limits_are_not_sent(scripted_openai: ScriptedOpenAI):
    scripted_openai.script(GOOD)
    texts = {name: {"type": "string", "maxLength": limit} for name, limit in (("a", 4_000), ("b", 9))}
    await ask_tools(await model_at(scripted_openai), OfferedTool("write", "Write.", object_schema(**texts)))
    assert sent_schemas(scripted_openai) == [{"a": {"type": "string"}, "b": {"type": "string", "maxLength": 9}}]


async def test_refused_tools_are_simplified_and_then_sent_in_words(scripted_openai: ScriptedOpenAI):
    model = await model_at(scripted_openai)
    scripted_openai.refuses = {"tools": HttpError(400, "this model does not support tools")}
    scripted_openai.script(*[LEFT_IN_TEXT[0]] * 2)
    for _ in range(2):
        answer = await ask_tools(model)
        assert [(one.name, one.arguments) for one in answer.calls] == [("read", {"path": "a.txt"})]
    assert not model.uses_tool_calling
    assert sent_schemas(scripted_openai) == [FULL, SIMPLE, {}, {}]
    offering, in_words = scripted_openai.requests[:2], scripted_openai.requests[2:]
    assert all(request["parallel_tool_calls"] is False for request in offering)
    assert all('{"name":"read","description":"Read a file.",' in one["messages"][0]["content"] for one in in_words)
    assert all(request["logprobs"] for request in scripted_openai.requests)


@pytest.mark.parametrize("finish", ["tool_calls", "length"])
async def test_a_truncated_streamed_call_is_not_a_call(scripted_openai: ScriptedOpenAI, finish: str):
    """LangChain itself would complete its arguments."""
    cut, complete = ("read", '{"path": "a'), ("read", '{"path": "a.txt"}')
    scripted_openai.script(tool_calls(cut, finish_reason=finish), tool_calls(complete))
    model, caller = await model_at(scripted_openai), streaming_caller("")
    for invalid_arguments, arguments in (('{"path": "a', {}), ("", {"path": "a.txt"})):
        answer = await model.call([HumanMessage("Read")], [READ], max_calls=2, sampling={}, caller=caller)
        assert [(one.name, one.invalid_arguments, one.arguments) for one in answer.calls] == [
            ("read", invalid_arguments, arguments)
        ]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    "arguments",
    [
        '{"path": "a.txt",}',
        '{"path": "a.txt" /* this one */}',
        "{'path': 'a.txt'}",
        '```json\n{"path": "a.txt"}\n```',
        '{"path": "a.txt"}{"path": "a.txt"}',
        '"{\\"path\\": \\"a.txt\\"}"',
    ],
)
async def test_arguments_that_are_nearly_json_are_read(scripted_openai: ScriptedOpenAI, arguments: str, streamed: bool):
    scripted_openai.script(tool_calls(("read", arguments)))
    caller = streaming_caller("") if streamed else None
    model = await model_at(scripted_openai)
    answer = await model.call([HumanMessage("Read")], [READ], max_calls=2, sampling={}, caller=caller)
    assert [(one.name, one.arguments) for one in answer.calls] == [("read", {"path": "a.txt"})]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("arguments", ["null", "", "{}"])
async def test_a_call_may_have_no_arguments(scripted_openai: ScriptedOpenAI, arguments: str, streamed: bool):
    scripted_openai.script(tool_calls(("read", arguments)))
    caller = streaming_caller("") if streamed else None
    model = await model_at(scripted_openai)
    answer = await model.call([HumanMessage("Read")], [READ], max_calls=2, sampling={}, caller=caller)
    assert [(one.name, one.arguments, one.invalid_arguments) for one in answer.calls] == [("read", {}, "")]


async def test_a_name_that_each_chunk_repeats_is_one_name():
    pieces = [
        AIMessageChunk("", tool_call_chunks=[ToolCallChunk(name=name, args=args, id=id_, index=0)])
        for name, args, id_ in (("read", '{"path": ', "c1"), ("read", '"a.txt"', "c1"), (None, "}", None))
    ]
    (call,) = join_pieces(pieces).tool_calls
    assert (call["name"], call["args"], call["id"]) == ("read", {"path": "a.txt"}, "c1")
    apart = [
        AIMessageChunk("", tool_call_chunks=[ToolCallChunk(name=name, args=args, id=None, index=0)])
        for name, args in (("re", "{"), ("ad", "}"))
    ]
    assert join_pieces(apart).tool_calls[0]["name"] == "read"


LEFT_IN_TEXT = [
    '<tool_call>\n{"name": "read", "arguments": {"path": "a.txt"}}\n</tool_call>',
    "I'll look.\n<tool_call>\n<function=read>\n<parameter=path>\na.txt\n</parameter>\n</function>\n</tool_call>",
    '[TOOL_CALLS]read[ARGS]{"path": "a.txt"}',
    '<|python_tag|>{"name": "read", "parameters": {"path": "a.txt"}}<|eom_id|>',
    '<|channel|>commentary to=functions.read <|constrain|>json<|message|>{"path": "a.txt"}<|call|>',
    '{"name": "read", "arguments": {"path": "a.txt"}}',
]
ABOUT_CALLS = [
    'Write `{"name": "read", "arguments": {"path": "a.txt"}}` to read a file.',
    '```json\n{"name": "read", "arguments": {"path": "a.txt"}}\n```\nreads a file.',
    "Mistral writes `[TOOL_CALLS]` first.",
    '<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>',
]


@pytest.mark.parametrize(
    ("text", "calls"),
    [*((text, [("read", {"path": "a.txt"})]) for text in LEFT_IN_TEXT), *((one, []) for one in ABOUT_CALLS)],
)
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_call_left_in_the_text_is_read_after_a_native_one(
    scripted_openai: ScriptedOpenAI, text: str, calls: list[tuple[str, dict[str, str]]], streamed: bool
):
    """Text about calls, and calls to tools that are not offered, remain text."""
    scripted_openai.script(tool_calls(("read", '{"path": "b.txt"}')), Message({"content": text}))
    caller = streaming_caller("") if streamed else None
    model = await model_at(scripted_openai)
    for expected in ([("read", {"path": "b.txt"})], calls):
        answer = await model.call([HumanMessage("Read")], [READ], max_calls=2, sampling={}, caller=caller)
        assert [(one.name, one.arguments) for one in answer.calls] == expected
