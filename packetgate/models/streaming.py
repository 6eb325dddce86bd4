"""Streamed answers, shown only once their markup is cut out."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from packetgate.models.markup.links import LinkFilter
from packetgate.models.markup.stripping import MarkupFilter
from packetgate.models.model import HIDDEN, Asking, ask, was_cut_off
from packetgate.models.requests import exchange, join_pieces, usage_of
from packetgate.models.thoughts import Thoughts
from packetgate.models.transport import check_answered, named_errors, status_of, timeout_of
from packetgate.models.turns import Limit, attempt
from packetgate.state.base import TokenUsage
from packetgate.state.errors import DecisionError


class StreamedAnswer:
    """An answer in progress. If its template may open a thought, nothing is shown before the end of the thought."""

    def __init__(self, thoughts: Thoughts, request: str) -> None:
        self.pieces: list[AIMessage] = []
        self._thoughts = thoughts
        self._markup = MarkupFilter(request, opened=thoughts.opened is not False)

    def take(self, piece: AIMessage) -> str:
        """Take the next piece; return what can be shown now."""
        self.pieces.append(piece)
        known = self._thoughts.opened
        self._thoughts.learn_opening(self.pieces)
        released = self._markup.is_not_opened() if self._thoughts.opened is not known else ""
        return released + self._markup.feed(piece.text)

    def close(self) -> str:
        """Return the rest to show, and learn whether the template opens thoughts."""
        if not self._may_be_thought:
            self._thoughts.opened = self._markup.ended_thought or bool(self._thoughts.opened)
        return self._markup.close()

    @property
    def written(self) -> str:
        """The text as written."""
        return "".join(piece.text for piece in self.pieces)

    @property
    def text(self) -> str:
        """The text as written, empty if all of it may be a thought."""
        return "" if self._may_be_thought else self.written

    @property
    def shown(self) -> str:
        """The shown text."""
        return "" if self._may_be_thought else self._markup.text

    @property
    def usage(self) -> TokenUsage:
        """Tokens used, as far as known."""
        return usage_of(*self.pieces)

    @property
    def cut_off(self) -> bool:
        """Whether it reached its length limit."""
        return any(map(was_cut_off, self.pieces))

    @property
    def _may_be_thought(self) -> bool:
        return self.cut_off and self._thoughts.opened is not False and not self._markup.ended_thought


def piece_of(text: str) -> ChatGenerationChunk:
    """Return a text as a chunk for LangChain."""
    return ChatGenerationChunk(message=AIMessageChunk(content=text))


async def chunks(
    chat: BaseChatModel, messages: Sequence[BaseMessage], options: dict[str, Any], *, first_s: float | None = None
) -> AsyncIterator[AIMessage]:
    """Ask once and yield the answer in pieces.

    Args:
        first_s: longest wait for the first piece; None: as for any piece.
    """
    begun = False
    with attempt(chat, streamed=True) as limit, exchange(chat, messages, options) as answered:
        async for chunk in _streamed(chat, messages, options, limit, first_s):
            begun = True
            answered(chunk)
            yield chunk
    if not begun:
        yield await ask(chat, messages, options)
        chat.disable_streaming = True  # the server does not stream, whatever it is asked


async def _streamed(
    chat: BaseChatModel, messages: Sequence[BaseMessage], options: dict[str, Any], limit: Limit, first_s: float | None
) -> AsyncIterator[AIMessage]:
    coming = chat.astream(list(messages), HIDDEN, **options)
    begun = False
    first = limit.deadline if first_s is None else asyncio.get_running_loop().time() + first_s
    while True:
        with named_errors(chat, limit.way_out):
            try:
                async with asyncio.timeout_at(limit.deadline if begun else first):
                    chunk: BaseMessage = await anext(coming)
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


HELD = 300
"""Characters to hold back: words beside a call are not shown, as the call may not be made."""
REFUSED = frozenset({400, 405, 415, 422, 500, 501})
"""Statuses of requests that a server does not accept as they are."""


def streaming_asker(thoughts: Thoughts, user_words: str) -> Asking:
    """Return a function like `ask` that streams the words of answers without calls.

    Args:
        user_words: addresses in them stay links; if they ask for JSON, JSON stays.
    """

    async def asked(
        chat: BaseChatModel, messages: Sequence[BaseMessage], options: dict[str, Any], *, patient: bool = False
    ) -> AIMessage:
        told = _StreamedWords(
            chat=chat, thoughts=thoughts, options=options, user_words=user_words, patient=patient, cache=False
        )
        shown = await told.ainvoke(list(messages))
        told.answer.id = shown.id
        return told.answer

    return asked


class _StreamedWords(BaseChatModel):
    chat: Any
    thoughts: Any
    options: dict[str, Any]
    user_words: str
    patient: bool
    answer: AIMessage = AIMessage("")

    @property
    def _llm_type(self) -> str:
        return "streaming_asker"

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        raise NotImplementedError("call ainvoke: models are only asked on the event loop")

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        self.answer = await ask(self.chat, messages, self.options, patient=self.patient)
        return ChatResult(generations=[ChatGeneration(message=AIMessage(""))])

    async def _astream(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        coming, links, held = StreamedAnswer(self.thoughts, self.user_words), LinkFilter(self.user_words), ""
        first_s = timeout_of(self.chat)  # where nothing comes it is not asked again, as for any decision
        try:
            async for chunk in chunks(self.chat, messages, self.options, first_s=first_s):
                held += links.feed(coming.take(chunk))
                if len(held) > HELD and not _calls(coming.pieces):
                    yield piece_of(held)
                    held = ""
        except DecisionError as error:
            if coming.pieces or status_of(error.__cause__) not in REFUSED:
                raise
            try:
                await self._agenerate(messages)
            except DecisionError:
                raise error from error.__cause__
            self.chat.disable_streaming = "tool_calling"  # its server streams no answers to offers of tools
            yield piece_of("")
            return
        held += links.feed(coming.close()) + links.close()
        self.answer = join_pieces(coming.pieces)
        if self.answer.invalid_tool_calls:
            self.chat.disable_streaming = "tool_calling"  # some servers leave parts of a call out where they stream it
        yield piece_of("" if _calls(coming.pieces) else held)  # LangChain wants one piece at the least


def _calls(pieces: Sequence[AIMessage]) -> bool:
    return any(one.tool_calls or one.invalid_tool_calls or getattr(one, "tool_call_chunks", None) for one in pieces)
