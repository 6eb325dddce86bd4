"""Plain answers: messages in, text out, streamed through LangGraph's message stream."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from packetgate.models.calling import OfferedTool
from packetgate.models.markup.links import LinkFilter, inert
from packetgate.models.markup.stripping import NOTHING_LEFT
from packetgate.models.model import Model, ask
from packetgate.models.pictures import has_pictures, names_of
from packetgate.models.streaming import StreamedAnswer, chunks, piece_of
from packetgate.models.thoughts import Room, cut_off_in_thought, ended_in_thought, with_room
from packetgate.state.base import TokenUsage
from packetgate.state.errors import DecisionError

UNSEEN = "\n\n[Not shown to {}, which knows it by name alone: {}.]"
CUT_OFF = "\n\n[Cut off: an answer may be {:,} tokens long. answer_max_tokens says so.]"


@dataclass(frozen=True)
class Completion:
    """An answer in words."""

    text: str
    """As written, with any tool markup that leaked into it."""
    usage: TokenUsage
    message_id: str | None
    """The id under which it was streamed."""
    problem: str = ""
    """Why pictures were refused."""


async def complete(
    model: Model,
    messages: Sequence[BaseMessage],
    *,
    user_words: str,
    temperature: float,
    max_tokens: int,
    tools: Sequence[OfferedTool] = (),
) -> Completion:
    """Ask for an answer in words and stream it without markup.

    If pictures were not shown to the model, the last line of the answer says so.

    Args:
        user_words: Addresses in them stay links; if they ask for JSON, JSON stays.
        tools: Tools that the model is shown but does not call.

    Raises:
        DecisionError: the model cannot be asked, breaks off, or says nothing.
    """
    words = model.words_only(tools)
    shown = _Shown(
        model=model, length=max_tokens, temperature=temperature, user_words=user_words, words=words, cache=False
    )
    message = await shown.ainvoke(list(messages))
    return Completion(shown.written, shown.spent, message.id, shown.problem)


class _Shown(BaseChatModel):
    model: Any
    length: int
    temperature: float
    user_words: str
    words: dict[str, Any] = {}
    written: str = ""
    spent: TokenUsage = TokenUsage()
    problem: str = ""

    @property
    def _llm_type(self) -> str:
        return "shown"

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        raise NotImplementedError("call ainvoke: models are only asked on the event loop")

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        sent: list[BaseMessage] = self.model.sendable(messages)

        async def whole(most: int) -> StreamedAnswer:
            nonlocal sent
            answer = StreamedAnswer(self.model.thoughts, self.user_words)
            try:
                answer.take(await ask(self.model.chat, sent, self._options(most)))
            except DecisionError as error:
                sent = self.model.without_refused(sent, error)
                answer.take(await ask(self.model.chat, sent, self._options(most)))
            return answer

        answer, self.spent = await with_room(self.model.thoughts, self.length, whole)
        ending = self._ended(answer, messages, sent)
        answer.close()
        message = AIMessage(inert(answer.shown or NOTHING_LEFT, self.user_words) + ending)
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _astream(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        room, again = Room(self.model.thoughts, self.length), True
        sent: list[BaseMessage] = self.model.sendable(messages)
        while again:
            answer, links = StreamedAnswer(self.model.thoughts, self.user_words), LinkFilter(self.user_words)
            try:
                async for chunk in chunks(self.model.chat, sent, self._options(room.max_tokens)):
                    if text := links.feed(answer.take(chunk)):
                        yield piece_of(text)
            except DecisionError as error:
                if answer.pieces:
                    raise
                if not room.refused(error):
                    sent = self.model.without_refused(sent, error)
                continue
            again = room.answered(answer) and not answer.shown  # what was shown cannot be taken back
        self.spent = room.spent
        ending = self._ended(answer, messages, sent)
        if text := links.feed(answer.close()) + links.close() + ending:
            yield piece_of(text)
        if not answer.shown:
            yield piece_of(NOTHING_LEFT)

    def _options(self, most: int) -> dict[str, Any]:
        options: dict[str, Any] = self.model.sampling(temperature=self.temperature)
        return options | {"max_tokens": most} | self.words

    def _ended(self, answer: StreamedAnswer, messages: list[BaseMessage], sent: list[BaseMessage]) -> str:
        """Take the answer as it ended; return what the user is told below it."""
        self.model.note_taken(sent)
        self.written = answer.written
        if not answer.shown and ended_in_thought(answer):
            raise cut_off_in_thought(self.model.label, self.model.thoughts, self.spent)
        if not self.written.strip():
            raise DecisionError(f"{self.model.label} said nothing", self.spent)
        taken = has_pictures(sent) or not has_pictures(messages)
        self.problem = "" if taken else self.model.pictures_refused
        unseen = [] if taken else names_of(messages)
        ending = UNSEEN.format(self.model.name, ", ".join(unseen)) if unseen else ""
        ending += CUT_OFF.format(self.length) if answer.cut_off else ""
        self.written += ending
        return ending
