"""Plain answers: messages in, text out. LangGraph's message stream shows them while they are written."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from models.markup.links import LinkFilter, inert
from models.markup.stripping import NOTHING_LEFT, MarkupFilter, strip_markup
from models.model import HIDDEN, Model, ask, without_refused
from models.requests import exchange, usage_of
from models.transport import check_answered, model_label, named_errors, patience
from state.base import TokenUsage
from state.errors import DecisionError


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
    options = {"temperature": temperature, "max_tokens": max_tokens}
    opened = model.opens_thoughts
    shown = _Shown(hidden=model.chat, options=options, user_words=user_words, opened=opened, cache=False)
    message = await shown.ainvoke(list(messages))
    model.opens_thoughts = shown.opened
    return Completion(shown.written, shown.usage, message.id)


class _Shown(BaseChatModel):
    """A hidden model's one answer, without markup, for all to see. LangChain streams it where anybody listens."""

    hidden: BaseChatModel
    options: dict[str, Any]
    user_words: str
    opened: bool = False
    """Whether a thought is open when the answer begins: what comes is then kept until it ends."""
    written: str = ""
    """The answer with its markup."""
    usage: TokenUsage = TokenUsage()

    @property
    def _llm_type(self) -> str:
        return "shown"

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        raise NotImplementedError("call ainvoke: models are only asked on the event loop")

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        self._take(await ask(self.hidden, messages, self.options))
        self._check()
        message = AIMessage(inert(strip_markup(self.written).text or NOTHING_LEFT, self.user_words))
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _astream(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        markup, links = MarkupFilter(opened=self.opened), LinkFilter(self.user_words)
        async for chunk in _chunks(self.hidden, messages, self.options):
            self._take(chunk)
            if text := links.feed(markup.feed(chunk.text)):
                yield _chunk(text)
        self._check()
        if text := links.feed(markup.close()) + links.close():
            yield _chunk(text)
        self.opened |= markup.ended_thought
        if not markup.text:
            yield _chunk(NOTHING_LEFT)

    def _take(self, answer: AIMessage) -> None:
        self.written += answer.text
        self.usage += usage_of(answer)

    def _check(self) -> None:
        if not self.written.strip():
            raise DecisionError(f"{model_label(self.hidden)} said nothing", self.usage)


def _chunk(text: str) -> ChatGenerationChunk:
    return ChatGenerationChunk(message=AIMessageChunk(content=text))


async def _chunks(
    chat: BaseChatModel, messages: Sequence[BaseMessage], options: dict[str, Any]
) -> AsyncIterator[AIMessage]:
    """Ask once, and yield the answer as it comes; a refused sampling parameter is left out.

    Raises:
        DecisionError: the model cannot be asked, breaks off, or refuses to answer.
    """
    accepted, begun = dict(options), False
    while not begun:
        try:
            with exchange(chat, messages, accepted) as answered:
                async for chunk in _stream(chat, messages, accepted):
                    begun = True
                    answered(chunk)
                    yield chunk
            break
        except DecisionError as error:
            if begun:
                raise
            accepted = without_refused(accepted, error)
    if not begun:
        yield await ask(chat, messages, accepted)
        chat.disable_streaming = True  # the server does not stream, whatever it is asked


async def _stream(
    chat: BaseChatModel, messages: Sequence[BaseMessage], options: dict[str, Any]
) -> AsyncIterator[AIMessage]:
    """Stream with exactly these options, hidden from LangGraph's message stream; nothing, from a server that cannot."""
    limit = patience(chat)
    deadline = None if limit is None else asyncio.get_running_loop().time() + limit
    chunks = chat.astream(list(messages), HIDDEN, **options)
    begun = False
    while True:
        with named_errors(chat):
            try:
                async with asyncio.timeout_at(deadline):
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
