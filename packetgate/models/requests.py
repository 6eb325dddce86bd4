"""Record requests to models and their answers."""

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from time import perf_counter
from typing import Any, cast

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    InvalidToolCall,
    ToolCall,
    convert_to_openai_messages,
    message_chunk_to_message,
)
from pydantic import ConfigDict

from packetgate.models.pictures import without_picture_data
from packetgate.models.thoughts import count_thought_tokens
from packetgate.models.transport import model_label
from packetgate.state.base import Section, TokenUsage, now, storable
from packetgate.state.errors import DecisionError

_MAX_CHARS = 200_000
"""Limit of recorded characters per message; longer than any prompt that fits a model."""


class SentMessage(Section):
    """A sent message."""

    model_config = ConfigDict(extra="ignore")

    role: str
    text: str


class ModelRequest(Section):
    """A request to a model and its result."""

    model_config = ConfigDict(extra="ignore")

    model: str
    """Name and endpoint, without secrets."""
    messages: tuple[SentMessage, ...]
    options: dict[str, str | int | float | bool | None] = {}
    """Request options with simple values; schemas are not recorded."""
    answer: str = ""
    """The text of the answer, followed by its tool calls as JSON; partial if the answer broke off."""
    error: str = ""
    """Why the answer is missing or partial; empty without an error."""
    usage: TokenUsage = TokenUsage()
    at: datetime
    """When the request was sent, in UTC."""
    duration_ms: float


_collected: ContextVar[list[ModelRequest] | None] = ContextVar("collected", default=None)


@contextmanager
def collect_requests() -> Iterator[list[ModelRequest]]:
    """Collect the requests of the block and of tasks that start in the block."""
    requests: list[ModelRequest] = []
    token = _collected.set(requests)
    try:
        yield requests
    finally:
        _collected.reset(token)


@contextmanager
def record_request(
    chat: object, messages: Sequence[BaseMessage], options: dict[str, Any]
) -> Iterator[Callable[[AIMessage], None]]:
    """Record the request of the block, if requests are collected.

    Yield a function that must be called with the answer, or with each of its pieces.
    """
    requests = _collected.get()
    if requests is None:
        yield lambda _: None
        return
    at, began, problem = now(), perf_counter(), ""
    pieces: list[AIMessage] = []
    try:
        yield pieces.append
    except DecisionError as error:
        problem = storable(str(error))
        raise
    finally:
        refused_parameters: Collection[str] = getattr(chat, "refused_parameters", ())
        sent = {name: value for name, value in options.items() if name not in refused_parameters}
        requests.append(
            ModelRequest(
                model=storable(model_label(chat)),
                messages=_sent_messages(messages),
                options={name: value for name, value in sent.items() if isinstance(value, str | int | float | None)},
                answer=storable(_answer_text(join_pieces(pieces))[:_MAX_CHARS]) if pieces else "",
                error=problem,
                usage=usage_of(*pieces),
                at=at,
                duration_ms=round((perf_counter() - began) * 1000, 3),
            )
        )


def join_pieces(pieces: Sequence[AIMessage]) -> AIMessage:
    """Join the pieces of an answer, which may be a single message."""
    first, *rest = pieces
    if not isinstance(first, AIMessageChunk):
        return first
    joined = cast("AIMessageChunk", sum(rest, first))
    message = cast("AIMessage", message_chunk_to_message(joined))
    message.tool_calls, message.invalid_tool_calls = [], []  # LangChain completes the arguments of a cut-off call
    for chunk in joined.tool_call_chunks:
        try:
            arguments = json.loads(chunk["args"] or "{}", strict=False)
        except ValueError:
            arguments = None
        name, text = chunk["name"] or "", chunk["args"]
        if isinstance(arguments, dict):
            message.tool_calls.append(ToolCall(name=name, args=arguments, id=chunk["id"]))
        else:
            message.invalid_tool_calls.append(
                InvalidToolCall(type="invalid_tool_call", name=name, args=text, id=chunk["id"], error=None)
            )
    return message


def usage_of(*answers: AIMessage) -> TokenUsage:
    """Return the token usage of an answer or its pieces."""
    known = [answer.usage_metadata for answer in answers if answer.usage_metadata]
    usage = TokenUsage(
        input_tokens=sum(usage["input_tokens"] for usage in known),
        output_tokens=sum(usage["output_tokens"] for usage in known),
        cached_tokens=sum(usage.get("input_token_details", {}).get("cache_read", 0) for usage in known),
    )
    return usage.changed(thought_tokens=count_thought_tokens(answers, usage.output_tokens))


def _sent_messages(messages: Sequence[BaseMessage]) -> tuple[SentMessage, ...]:
    sent: list[dict[str, Any]] = convert_to_openai_messages(without_picture_data(messages), text_format="string")
    return tuple(SentMessage(role=one["role"], text=storable(_message_text(one)[:_MAX_CHARS])) for one in sent)


def _message_text(message: dict[str, Any]) -> str:
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    return (message.get("content") or "") + (json.dumps(calls, ensure_ascii=False) if calls else "")


def _answer_text(answer: AIMessage) -> str:
    calls = [
        {"name": call["name"], "arguments": call["args"]} for call in answer.tool_calls + answer.invalid_tool_calls
    ]
    return answer.text + (json.dumps(calls, ensure_ascii=False) if calls else "")
