"""Plain answers: messages in, text out. LangGraph's message stream shows them while they are written."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from models.markup.links import LinkFilter, inert
from models.markup.stripping import NOTHING_LEFT, MarkupFilter, strip_markup
from models.model import HIDDEN, Model, ask, was_cut_off
from models.requests import exchange, usage_of
from models.thoughts import Room, cut_off_in_thought, ended_in_thought, with_room
from models.transport import check_answered, named_errors
from models.turns import Limit, attempt
from state.base import TokenUsage
from state.errors import DecisionError

CUT_OFF = "\n\n[Cut off: an answer may be {:,} tokens long. answer_max_tokens says so.]"


@dataclass(frozen=True)
class Completion:
    """What a model wrote."""

    text: str
    """As it was written: tool markup that leaked into it is still there."""
    usage: TokenUsage
    message_id: str | None
    """The id under which it was streamed, without markup."""


async def complete(
    model: Model, messages: Sequence[BaseMessage], *, user_words: str, temperature: float, max_tokens: int
) -> Completion:
    """Ask for an answer in words; where LangGraph streams messages, it is shown without markup as it comes.

    Args:
        user_words: whose addresses stay live.

    Raises:
        DecisionError: the model cannot be asked, breaks off, or says nothing.
    """
    shown = _Shown(model=model, length=max_tokens, temperature=temperature, user_words=user_words, cache=False)
    message = await shown.ainvoke(list(messages))
    return Completion(shown.written, shown.spent, message.id)


@dataclass(frozen=True)
class _Pieces:
    """An answer as it came."""

    pieces: list[AIMessage] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces)

    @property
    def usage(self) -> TokenUsage:
        return usage_of(*self.pieces)

    @property
    def cut_off(self) -> bool:
        return any(map(was_cut_off, self.pieces))


class _Shown(BaseChatModel):
    """A hidden model's one answer, without markup, for all to see. LangChain streams it where anybody listens."""

    model: Any
    """The `Model`: LangChain takes no classes of others for fields."""
    length: int
    """Most tokens of what is shown."""
    temperature: float
    user_words: str
    written: str = ""
    """The answer with its markup."""
    spent: TokenUsage = TokenUsage()

    @property
    def _llm_type(self) -> str:
        return "shown"

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        raise NotImplementedError("call ainvoke: models are only asked on the event loop")

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        async def whole(most: int) -> _Pieces:
            return _Pieces([await ask(self.model.chat, messages, self._options(most))])

        answer, self.spent = await with_room(self.model.thoughts, self.length, whole)
        ending = self._ended(answer, strip_markup(answer.text).text)
        message = AIMessage(inert(strip_markup(self.written).text or NOTHING_LEFT, self.user_words) + ending)
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _astream(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        room, again = Room(self.model.thoughts, self.length), True
        while again:
            markup, links = MarkupFilter(opened=self.model.opens_thoughts), LinkFilter(self.user_words)
            answer = _Pieces()
            try:
                async for chunk in _chunks(self.model.chat, messages, self._options(room.max_tokens)):
                    answer.pieces.append(chunk)
                    if text := links.feed(markup.feed(chunk.text)):
                        yield _chunk(text)
            except DecisionError as error:
                if answer.pieces or not room.refused(error):
                    raise
                continue
            again = room.answered(answer) and not markup.text  # what was shown cannot be taken back
        self.spent = room.spent
        ending = self._ended(answer, markup.text)
        if text := links.feed(markup.close()) + links.close() + ending:
            yield _chunk(text)
        self.model.opens_thoughts |= markup.ended_thought
        if not markup.text:
            yield _chunk(NOTHING_LEFT)

    def _options(self, most: int) -> dict[str, Any]:
        options: dict[str, Any] = self.model.sampling(temperature=self.temperature)
        return options | {"max_tokens": most}

    def _ended(self, answer: _Pieces, shown: str) -> str:
        """Take the answer as it ended; return what is to be said of an end that the length made.

        Raises:
            DecisionError: there is nothing to show.
        """
        self.written = answer.text
        if not shown and (ended_in_thought(answer) or (answer.cut_off and self.model.opens_thoughts)):
            raise cut_off_in_thought(self.model.label, self.model.thoughts, self.spent)
        if not self.written.strip():
            raise DecisionError(f"{self.model.label} said nothing", self.spent)
        ending = CUT_OFF.format(self.length) if answer.cut_off else ""
        self.written += ending
        return ending


def _chunk(text: str) -> ChatGenerationChunk:
    return ChatGenerationChunk(message=AIMessageChunk(content=text))


async def _chunks(
    chat: BaseChatModel, messages: Sequence[BaseMessage], options: dict[str, Any]
) -> AsyncIterator[AIMessage]:
    """Ask once, and yield the answer as it comes.

    Raises:
        DecisionError: the model cannot be asked, breaks off, or refuses to answer.
    """
    begun = False
    with attempt(chat, streamed=True) as limit, exchange(chat, messages, options) as answered:
        async for chunk in _stream(chat, messages, options, limit):
            begun = True
            answered(chunk)
            yield chunk
    if not begun:
        yield await ask(chat, messages, options)
        chat.disable_streaming = True  # the server does not stream, whatever it is asked


async def _stream(
    chat: BaseChatModel, messages: Sequence[BaseMessage], options: dict[str, Any], limit: Limit
) -> AsyncIterator[AIMessage]:
    """Stream with exactly these options, hidden from LangGraph's message stream; nothing, from a server that cannot."""
    chunks = chat.astream(list(messages), HIDDEN, **options)
    begun = False
    while True:
        with named_errors(chat, limit.way_out):
            try:
                async with asyncio.timeout_at(limit.deadline):
                    chunk: BaseMessage = await anext(chunks)
            except StopAsyncIteration:
                return
            except ValueError:  # so LangChain says that there was no chunk at all
                if begun:
                    raise
                return
            if not isinstance(chunk, AIMessage):  # the endpoint chooses the role
                raise TypeError(f"a message of type {chunk.type}")
        check_answered(chat, chunk)
        begun = True
        yield chunk
