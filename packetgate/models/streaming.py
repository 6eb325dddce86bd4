"""Answers as they come, hidden from LangGraph's message stream until their markup is cut out."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk

from packetgate.models.markup.stripping import MarkupFilter
from packetgate.models.model import HIDDEN, ask, was_cut_off
from packetgate.models.requests import exchange, usage_of
from packetgate.models.thoughts import Thoughts
from packetgate.models.transport import check_answered, named_errors
from packetgate.models.turns import Limit, attempt
from packetgate.state.base import TokenUsage


class Coming:
    """An answer as it comes. Where the template may have opened a thought, nothing is shown until its end is known."""

    def __init__(self, thoughts: Thoughts, request: str) -> None:
        self.pieces: list[AIMessage] = []
        self._thoughts = thoughts
        self._markup = MarkupFilter(request, opened=thoughts.opened is not False)

    def take(self, piece: AIMessage) -> str:
        """Take the next piece; return what can be shown now."""
        self.pieces.append(piece)
        known = self._thoughts.opened
        self._thoughts.noticed(self.pieces)
        released = self._markup.is_not_opened() if self._thoughts.opened is not known else ""
        return released + self._markup.feed(piece.text)

    def close(self) -> str:
        """Return the rest that is shown, and learn from the answer, which is at its end."""
        if not self._may_be_thought:
            self._thoughts.opened = self._markup.ended_thought or bool(self._thoughts.opened)
        return self._markup.close()

    @property
    def written(self) -> str:
        """All that was written."""
        return "".join(piece.text for piece in self.pieces)

    @property
    def text(self) -> str:
        """What was written, unless all of it may be a thought."""
        return "" if self._may_be_thought else self.written

    @property
    def shown(self) -> str:
        """What is shown of it."""
        return "" if self._may_be_thought else self._markup.text

    @property
    def usage(self) -> TokenUsage:
        """What it took, as far as was told."""
        return usage_of(*self.pieces)

    @property
    def cut_off(self) -> bool:
        """Whether the length ran out."""
        return any(map(was_cut_off, self.pieces))

    @property
    def _may_be_thought(self) -> bool:
        return self.cut_off and self._thoughts.opened is not False and not self._markup.ended_thought


def piece_of(text: str) -> ChatGenerationChunk:
    """Return a piece of an answer as LangChain streams it."""
    return ChatGenerationChunk(message=AIMessageChunk(content=text))


async def chunks(
    chat: BaseChatModel, messages: Sequence[BaseMessage], options: dict[str, Any], *, first_s: float | None = None
) -> AsyncIterator[AIMessage]:
    """Ask once, and yield the answer as it comes.

    Args:
        first_s: Longest wait for its beginning; None: as long as for any piece.
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
