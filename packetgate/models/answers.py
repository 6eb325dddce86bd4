"""Answers in words: streamed through LangGraph's message stream, without markup and with inert links."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.chat_models import agenerate_from_stream
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult

from packetgate.models.calling import OfferedTool
from packetgate.models.links import LinkFilter
from packetgate.models.model import HIDDEN, PICTURES_REFUSED, ChatCaller, Model, was_cut_off
from packetgate.models.pictures import pictures_in
from packetgate.models.requests import join_pieces, record_request, usage_of
from packetgate.models.stripping import NOTHING_LEFT, MarkupFilter
from packetgate.models.thoughts import Room, cut_off_in_thought, ended_in_thought
from packetgate.models.transport import as_decision_errors, check_answered, timeout_of
from packetgate.models.turns import limited_request
from packetgate.state.base import TokenUsage
from packetgate.state.errors import DecisionError

UNSEEN = "\n\n[Not shown to {}, only named: {}.]"
CUT_OFF = "\n\n[Cut off at {:,} tokens: raise answer_max_tokens for longer answers.]"
HELD = 300
"""Characters to hold back: text beside a tool call is not shown, because the call may not run."""


@dataclass(frozen=True)
class Completion:
    """An answer in words, with its token usage and message id."""

    text: str
    """The text as the model wrote it, including leaked tool markup."""
    usage: TokenUsage
    message_id: str | None
    """The id under which it was streamed."""
    problem: str = ""
    """Why pictures were refused."""


@dataclass(frozen=True)
class _Streamed:
    """An answer that was streamed, as `ask_with_room` reads it."""

    message: AIMessage
    text: str
    """The text without thoughts and markup."""

    @property
    def usage(self) -> TokenUsage:
        return usage_of(self.message)

    @property
    def cut_off(self) -> bool:
        return was_cut_off(self.message)


class _Shown(BaseChatModel):
    """A chat model that streams the texts that `texts` yields through LangGraph."""

    texts: Callable[[], AsyncIterator[str]]

    @property
    def _llm_type(self) -> str:
        return "shown"

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
        yield ChatGenerationChunk(message=AIMessageChunk(content="", chunk_position="last"))


async def _show(texts: Callable[[], AsyncIterator[str]]) -> AIMessage:
    return await _Shown(texts=texts, cache=False).ainvoke([])


async def complete(
    model: Model,
    messages: Sequence[BaseMessage],
    *,
    user_words: str,
    temperature: float,
    max_tokens: int,
    tools: Sequence[OfferedTool] = (),
) -> Completion:
    """Return an answer in words, which is streamed without markup.

    If pictures were not shown to the model, the last line of the answer says so.

    Args:
        user_words: Addresses in these words stay links; if the words ask for JSON, JSON in the answer stays.
        tools: Tools that the model is shown but does not call.

    Raises:
        DecisionError: the model cannot be asked, breaks off, or returns no text.
    """
    options = model.sampling(temperature=temperature) | model.words_only(tools)
    room, written, problem = Room(model.thoughts, max_tokens), "", ""

    async def texts() -> AsyncIterator[str]:
        nonlocal written, problem
        again = True
        while again:
            markup, links, pieces = MarkupFilter(user_words), LinkFilter(user_words), list[AIMessage]()
            try:
                async for piece in stream(model.chat, messages, options | {"max_tokens": room.max_tokens}):
                    pieces.append(piece)
                    yield links.feed(markup.feed(piece.text))
            except DecisionError as error:
                if pieces:
                    raise
                room.after_refusal(error)
                continue
            yield links.feed(markup.close()) + links.close()
            answer = _Streamed(join_pieces(pieces), markup.text)
            again = room.after_answer(answer) and not markup.text  # shown text cannot be withdrawn
        written = answer.message.text
        if not answer.text and ended_in_thought(answer):
            raise cut_off_in_thought(model.label, model.thoughts, room.spent)
        if not written.strip():
            raise DecisionError(f"{model.label} said nothing", room.spent)
        problem = str(answer.message.response_metadata.get(PICTURES_REFUSED, ""))
        unseen = [one for one in pictures_in(messages) if one] if problem or model.sees is False else []
        ending = UNSEEN.format(model.name, ", ".join(unseen)) if unseen else ""
        ending += CUT_OFF.format(max_tokens) if answer.cut_off else ""
        written += ending
        yield ("" if answer.text else NOTHING_LEFT) + ending

    message = await _show(texts)
    return Completion(written, room.spent, message.id, problem)


def streaming_asker(user_words: str) -> ChatCaller:
    """Return a function like `ask` that streams the words of answers without calls.

    Args:
        user_words: addresses in these words stay links; if the words ask for JSON, JSON in the answer stays.
    """

    async def ask(
        chat: BaseChatModel, messages: Sequence[BaseMessage], options: dict[str, Any], *, patient: bool = False
    ) -> AIMessage:
        pieces: list[AIMessage] = []

        async def texts() -> AsyncIterator[str]:
            markup, links, held = MarkupFilter(user_words), LinkFilter(user_words), ""
            async for piece in stream(chat, messages, options, first_s=timeout_of(chat)):
                pieces.append(piece)
                held += links.feed(markup.feed(piece.text))
                if len(held) > HELD and not _has_calls(pieces):
                    yield held
                    held = ""
            held += links.feed(markup.close()) + links.close()
            yield "" if _has_calls(pieces) else held

        shown = await _show(texts)
        answer = join_pieces(pieces)
        answer.id = shown.id
        return answer

    return ask


async def stream(
    chat: BaseChatModel, messages: Sequence[BaseMessage], options: dict[str, Any], *, first_s: float | None = None
) -> AsyncIterator[AIMessage]:
    """Ask once and yield the answer in pieces.

    Args:
        first_s: longest wait for the first piece; None: the same as for later pieces.
    """
    pieces = chat.astream(list(messages), HIDDEN, **options)
    with limited_request(chat, streamed=True) as limit, record_request(chat, messages, options) as record:
        deadline = limit.deadline
        if deadline is not None and first_s is not None:
            deadline = min(deadline, asyncio.get_running_loop().time() + first_s)
        while True:
            with as_decision_errors(chat, limit.advice):
                async with asyncio.timeout_at(deadline):
                    piece: BaseMessage | None = await anext(pieces, None)
                if piece is None:
                    return
                if not isinstance(piece, AIMessage):  # the endpoint chooses the role
                    raise TypeError(f"a message of type {piece.type}")
            check_answered(chat, piece)
            record(piece)
            yield piece
            deadline = limit.deadline


def _has_calls(pieces: Sequence[AIMessage]) -> bool:
    return any(one.tool_calls or one.invalid_tool_calls or getattr(one, "tool_call_chunks", None) for one in pieces)
