"""Text answers: streamed through LangGraph's message stream, without markup and with inert links."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from time import monotonic
from typing import Any, cast

from langchain_core.callbacks import AsyncCallbackManager
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.chat_models import agenerate_from_stream
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    InvalidToolCall,
    ToolCall,
    message_chunk_to_message,
)
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import (
    ensure_config,
    get_async_callback_manager_for_config,
    var_child_runnable_config,
)

from packetgate.models.echoes import ONLY_ECHOES, EchoFilter
from packetgate.models.links import LinkFilter
from packetgate.models.model import HIDDEN, PICTURES_REFUSED, ChatCaller, Model, ModelAnswer, OfferedTool, was_cut_off
from packetgate.models.pictures import picture_names
from packetgate.models.stripping import ONLY_MARKUP, MarkupFilter
from packetgate.models.thoughts import cut_off_in_thought, ended_within_thought, smaller_token_limit, usage_of
from packetgate.models.transport import (
    as_decision_errors,
    check_not_refused,
    is_retried,
    limited_request,
    timeout_of,
    with_each_chat,
)
from packetgate.state.base import TokenUsage
from packetgate.state.errors import DecisionError
from packetgate.state.private_names import is_streaming_handler

PICTURES_NOT_SHOWN = "\n\n[Not shown to {}, only named: {}.]"
CUT_OFF = "\n\n[Cut off at {:,} tokens: raise answer_max_tokens for longer answers.]"


class _AnswerFilter:
    """Removes markup and sentences of the prompts from a streamed answer, and makes its links inert."""

    def __init__(self, user_words: str, messages: Sequence[BaseMessage]) -> None:
        self.markup, self._links = MarkupFilter(user_words), LinkFilter(user_words)
        self._echoes = EchoFilter(one.text for one in messages if one.type != "system")

    def feed(self, text: str) -> str:
        return self._links.feed(self._echoes.feed(self.markup.feed(text)))

    def close(self) -> str:
        return self._links.feed(self._echoes.feed(self.markup.close()) + self._echoes.close()) + self._links.close()

    @property
    def substitute(self) -> str:
        """Replacement for an answer without text; empty if there is text."""
        return ("" if self._echoes.has_text else ONLY_ECHOES) if self.markup.text else ONLY_MARKUP


class _TextStreamer(BaseChatModel):
    """A chat model without a model: LangGraph streams the texts that `texts` yields."""

    texts: Callable[[], AsyncIterator[str]]
    pieces: list[AIMessage]
    """The pieces of the model's own answer, which have its usage."""

    @property
    def _llm_type(self) -> str:
        return "text_streamer"

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        raise NotImplementedError("synchronous calls are not supported: use ainvoke or astream")

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return await agenerate_from_stream(self._astream(messages))

    async def _astream(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        async for text in self.texts():
            if text:
                yield ChatGenerationChunk(message=AIMessageChunk(content=text))
        usage = join_pieces(self.pieces).usage_metadata if self.pieces else None
        yield ChatGenerationChunk(message=AIMessageChunk(content="", usage_metadata=usage, chunk_position="last"))


async def _stream_texts(
    chat: Runnable[Any, Any], texts: Callable[[], AsyncIterator[str]], pieces: list[AIMessage]
) -> AIMessage:
    """Stream texts in place of the output of `chat`, and return the message."""
    config: RunnableConfig = {"callbacks": _callbacks(of_streams=True), "run_name": chat.get_name()}
    return await _TextStreamer(texts=texts, pieces=pieces, cache=False).ainvoke([], config)


def _callbacks(*, of_streams: bool) -> AsyncCallbackManager:
    """Return the run's callback handlers that stream to users, or the others, such as tracers.

    The first receive the text that is shown, and the others the model's own run. Each receives an answer once.
    """
    manager = get_async_callback_manager_for_config(ensure_config())
    for handler in [*manager.handlers]:
        if is_streaming_handler(handler) is not of_streams:
            manager.remove_handler(handler)
    return manager


async def complete(
    model: Model,
    messages: Sequence[BaseMessage],
    *,
    user_words: str,
    temperature: float,
    max_tokens: int,
    tools: Sequence[OfferedTool] = (),
) -> ModelAnswer:
    """Return a text answer, and stream it without markup.

    If the model did not receive the images, the last line of the answer says so.

    Args:
        user_words: text of the user. Links to addresses in this text stay active. If the text asks for JSON, JSON stays
            in the answer.
        tools: tools that the prompt describes and the model may not call.

    Raises:
        DecisionError: the model cannot be asked, breaks off, or returns no text.
    """
    options = model.sampling(temperature=temperature) | model.text_answer_options(tools)
    written, usage, problem, pieces = "", TokenUsage(), "", list[AIMessage]()

    async def texts() -> AsyncIterator[str]:
        nonlocal written, usage, problem
        thought_limit = model.thoughts.token_limit
        shown = _AnswerFilter(user_words, messages)
        while not pieces:
            try:
                async for piece in stream(model.chat, messages, options | {"max_tokens": max_tokens + thought_limit}):
                    pieces.append(piece)
                    yield shown.feed(piece.text)
                break
            except DecisionError as error:
                if pieces:
                    raise
                thought_limit = smaller_token_limit(thought_limit, error)
        yield shown.close()
        if not pieces:
            raise DecisionError(f"{model.label} returned no text")
        answer = join_pieces(pieces)
        written, usage, cut_off = answer.text, usage_of(answer), was_cut_off(answer)
        model.thoughts.record(usage.thought_tokens)
        if not shown.markup.text and ended_within_thought("", usage, cut_off=cut_off):
            raise cut_off_in_thought(model.label, model.thoughts, usage)
        if not written.strip():
            raise DecisionError(f"{model.label} returned no text", usage)
        problem = str(answer.response_metadata.get(PICTURES_REFUSED, ""))
        names = [one for one in picture_names(messages) if one] if problem or model.accepts_images is False else []
        ending = PICTURES_NOT_SHOWN.format(model.name, ", ".join(names)) if names else ""
        ending += CUT_OFF.format(max_tokens) if cut_off else ""
        written += ending
        yield shown.substitute + ending

    message = await _stream_texts(model.chat, texts, pieces)
    return ModelAnswer(written, usage, message_id=message.id, problem=problem)


def streaming_caller(user_words: str) -> ChatCaller:
    """Return a function like `ask_chat` that also streams the text of an answer, up to its first call.

    Args:
        user_words: see `complete`.
    """

    async def ask(
        chat: Runnable[Any, Any],
        messages: Sequence[BaseMessage],
        options: dict[str, Any],
        *,
        double_timeout: bool = False,
    ) -> AIMessage:
        pieces: list[AIMessage] = []

        async def texts() -> AsyncIterator[str]:
            shown = _AnswerFilter(user_words, messages)
            async for piece in stream(chat, messages, options, first_timeout_s=timeout_of(chat)):
                pieces.append(piece)
                if not _has_calls(pieces):
                    yield shown.feed(piece.text)
            if not _has_calls(pieces):
                yield shown.close()

        streamed = await _stream_texts(chat, texts, pieces)
        answer = join_pieces(pieces)
        answer.id = streamed.id
        return answer

    return ask


async def stream(
    chat: Runnable[Any, Any],
    messages: Sequence[BaseMessage],
    options: dict[str, Any],
    *,
    first_timeout_s: float | None = None,
) -> AsyncIterator[AIMessage]:
    """Ask once and yield the answer in pieces.

    Args:
        first_timeout_s: longest wait for the first piece; None: the same wait as for later pieces.
    """
    asked = with_each_chat(chat, lambda one: one.bind(**options))
    pieces = _answer_of(asked, messages) if is_retried(chat) else asked.astream(list(messages), HIDDEN)
    config: RunnableConfig = {**ensure_config(), "callbacks": _callbacks(of_streams=False)}
    with limited_request(chat, streamed=True) as limit:
        deadline = limit
        if deadline is not None and first_timeout_s is not None:
            deadline = min(deadline, monotonic() + first_timeout_s)
        while True:
            with as_decision_errors(chat):
                async with asyncio.timeout_at(deadline):
                    outer = var_child_runnable_config.set(config)  # wrapped models ignore callbacks of an argument
                    try:
                        piece: BaseMessage | None = await anext(pieces, None)
                    finally:
                        var_child_runnable_config.reset(outer)
                if piece is None:
                    return
                if not isinstance(piece, AIMessage):
                    raise TypeError(f"the endpoint returned a message of type {piece.type}")
            check_not_refused(chat, piece)
            yield piece
            deadline = limit


async def _answer_of(asked: Runnable[Any, Any], messages: Sequence[BaseMessage]) -> AsyncIterator[Any]:
    yield await asked.ainvoke(list(messages), HIDDEN)


def join_pieces(pieces: Sequence[AIMessage]) -> AIMessage:
    """Join the pieces of an answer, which may be a single message."""
    first, *rest = pieces
    if not isinstance(first, AIMessageChunk):
        return first
    names: dict[int | None, str] = {}
    for chunk in (one for piece in pieces if isinstance(piece, AIMessageChunk) for one in piece.tool_call_chunks):
        name, known = chunk["name"] or "", names.get(chunk["index"], "")
        if name == known:  # some servers repeat the name in each chunk, and LangChain joins them
            chunk["name"] = None
        names[chunk["index"]] = known if name == known else known + name
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


def _has_calls(pieces: Sequence[AIMessage]) -> bool:
    return any(one.tool_calls or one.invalid_tool_calls or getattr(one, "tool_call_chunks", None) for one in pieces)
