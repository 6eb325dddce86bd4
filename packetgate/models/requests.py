"""Answers of models: their pieces, their tokens, and whether requests failed."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import cast

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    InvalidToolCall,
    ToolCall,
    message_chunk_to_message,
)

from packetgate.models.thoughts import count_thought_tokens
from packetgate.state.base import TokenUsage, storable
from packetgate.state.errors import DecisionError

_errors: ContextVar[list[str] | None] = ContextVar("errors", default=None)


@contextmanager
def collect_requests() -> Iterator[list[str]]:
    """Collect the error of each request of the block and of its tasks; empty text for a request without an error."""
    errors: list[str] = []
    token = _errors.set(errors)
    try:
        yield errors
    finally:
        _errors.reset(token)


@contextmanager
def record_request() -> Iterator[None]:
    """Record whether the request of the block failed, if requests are collected."""
    problem, errors = "", _errors.get()
    try:
        yield
    except DecisionError as error:
        problem = storable(str(error))
        raise
    finally:
        if errors is not None:
            errors.append(problem)


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
