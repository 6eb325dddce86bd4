"""What a model says that is offered tools: shown as it comes, once it has said more than models say before a call."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from packetgate.models.markup.links import LinkFilter
from packetgate.models.model import Asking, ask
from packetgate.models.requests import whole
from packetgate.models.streaming import Coming, chunks, piece_of
from packetgate.models.thoughts import Thoughts
from packetgate.models.transport import status_of, timeout_of
from packetgate.state.errors import DecisionError

HELD = 300
"""Characters that are held back: what a model says beside a call is not shown, as the call may not be made."""
REFUSED = frozenset({400, 405, 415, 422, 500, 501})
"""What servers answer to a request that they do not take as it is."""


def telling(thoughts: Thoughts, user_words: str) -> Asking:
    """Return what asks a model as `ask` does, and shows its words where LangGraph streams messages.

    Args:
        user_words: What the user said. Addresses in it stay links; so does JSON that it asks for.
    """

    async def asked(
        chat: BaseChatModel, messages: Sequence[BaseMessage], options: dict[str, Any], *, patient: bool = False
    ) -> AIMessage:
        told = _Telling(
            chat=chat, thoughts=thoughts, options=options, user_words=user_words, patient=patient, cache=False
        )
        shown = await told.ainvoke(list(messages))
        told.answer.id = shown.id
        return told.answer

    return asked


class _Telling(BaseChatModel):
    chat: Any
    thoughts: Any
    options: dict[str, Any]
    user_words: str
    patient: bool
    answer: AIMessage = AIMessage("")

    @property
    def _llm_type(self) -> str:
        return "telling"

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        raise NotImplementedError("call ainvoke: models are only asked on the event loop")

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        self.answer = await ask(self.chat, messages, self.options, patient=self.patient)
        return ChatResult(generations=[ChatGeneration(message=AIMessage(""))])

    async def _astream(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        coming, links, held = Coming(self.thoughts, self.user_words), LinkFilter(self.user_words), ""
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
        self.answer = whole(coming.pieces)
        if self.answer.invalid_tool_calls:
            self.chat.disable_streaming = "tool_calling"  # some servers leave parts of a call out where they stream it
        yield piece_of("" if _calls(coming.pieces) else held)  # LangChain wants one piece at the least


def _calls(pieces: Sequence[AIMessage]) -> bool:
    return any(one.tool_calls or one.invalid_tool_calls or getattr(one, "tool_call_chunks", None) for one in pieces)
