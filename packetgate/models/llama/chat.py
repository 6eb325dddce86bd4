"""A GGUF file as a LangChain chat model and as a `Model`, with a grammar and token probabilities."""

import asyncio
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.chat_models import agenerate_from_stream
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.messages.ai import InputTokenDetails, UsageMetadata
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from pydantic import PrivateAttr

from packetgate.models.call_syntax import CallSyntax
from packetgate.models.decoding import WrittenCall
from packetgate.models.llama.engine import EngineAnswer, LlamaEngine, Request
from packetgate.models.llama.grammar import CallForm
from packetgate.models.llama.prompt import Chat
from packetgate.models.model import (
    ChatCaller,
    Model,
    ModelAnswer,
    OfferedTool,
    WordProbabilities,
    ask_chat,
    was_cut_off,
)
from packetgate.models.options import ModelOptions
from packetgate.models.pictures import without_pictures
from packetgate.models.plain_tools import as_chat
from packetgate.models.thoughts import usage_of
from packetgate.models.token_probabilities import TokenSpans

_SAMPLING = frozenset({"temperature", "top_p", "max_tokens", "seed", "enable_thinking"})
_REQUEST = frozenset({"form", "must_call", "words_only", "measured_words", "tools"})
"""Keyword arguments of `invoke` that become a request's sampling and its fields; others are ignored."""

_CACHED_COUNTS = 2048
"""Number of texts whose token count is cached."""
_THOUGHT_TOKENS = 2_000
"""Room in the context for a thought, if no budget is set."""


class LlamaCppChat(BaseChatModel):
    """A GGUF model in this process. Requests are queued; a cancelled request stops at its next token."""

    model_name: str
    max_tokens: int = 1024
    """Longest answer, in tokens, if a request sets no limit."""
    temperature: float = 0.7
    _engine: LlamaEngine = PrivateAttr()

    def __init__(self, engine: LlamaEngine) -> None:
        super().__init__(model_name=engine.name)
        self._engine = engine

    @property
    def _llm_type(self) -> str:
        return "llamacpp"

    def get_num_tokens(self, text: str) -> int:
        """Return the number of tokens of a plain text. Thread-safe."""
        return len(self._engine.weights.tokenize(text, special=False))

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        raise NotImplementedError("synchronous calls are not supported: use ainvoke or astream")

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return await agenerate_from_stream(self._astream(messages, *args, **kwargs))

    async def _astream(
        self, messages: list[BaseMessage], stop: list[str] | None = None, *args: Any, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        if stop:
            raise ValueError("llama.cpp models do not support stop texts: use an answer form instead")
        loop = asyncio.get_running_loop()
        pieces: asyncio.Queue[str | None] = asyncio.Queue()
        cancelled = threading.Event()

        def put(piece: str | None) -> None:
            if not cancelled.is_set():
                loop.call_soon_threadsafe(pieces.put_nowait, piece)

        given = {name: value for name, value in kwargs.items() if name in _SAMPLING and value is not None}
        sampling = {"max_tokens": self.max_tokens, "temperature": self.temperature, **given}
        fields = {name: value for name, value in kwargs.items() if name in _REQUEST}
        future = self._engine.submit(Request(_chat(messages), sampling, cancelled=cancelled, on_text=put, **fields))
        future.add_done_callback(lambda _: put(None))
        try:
            while (piece := await pieces.get()) is not None:
                yield ChatGenerationChunk(message=AIMessageChunk(content=piece))
            answer = future.result()
        finally:
            cancelled.set()
            future.cancel()
        usage = UsageMetadata(
            input_tokens=answer.input_tokens,
            output_tokens=len(answer.tokens),
            total_tokens=answer.input_tokens + len(answer.tokens),
            input_token_details=InputTokenDetails(cache_read=answer.cached_tokens),
        )
        last = AIMessageChunk(content="", usage_metadata=usage, chunk_position="last")
        info = {"finish_reason": answer.finish_reason, "answer": answer}
        yield ChatGenerationChunk(message=last, generation_info=info)


class LlamaCppModel(Model):
    """A GGUF model in this process."""

    chat: LlamaCppChat
    is_local = runs_here = True
    uses_tool_calling = True
    accepts_images = False

    def __init__(self, chat: LlamaCppChat, options: ModelOptions | None = None) -> None:
        super().__init__(chat, options)
        self.token_counter = lru_cache(_CACHED_COUNTS)(chat.get_num_tokens)
        if not chat._engine.prompts.may_think:
            self.thoughts.record(0)

    @classmethod
    def load(cls, path: str, options: Mapping[str, int] | None = None) -> "LlamaCppModel":
        """Load a GGUF file; blocks for seconds."""
        return cls(LlamaCppChat(LlamaEngine(path, options)))

    @property
    def reading_speed(self) -> float | None:
        """Prompt tokens per second, as measured on the first long prompt."""
        return self.chat._engine.reading_speed

    @property
    def context_size(self) -> int:
        """Tokens of prompt and answer together."""
        return self.chat._engine.context_size

    async def fits(self, messages: Sequence[BaseMessage], max_tokens: int, tools: Sequence[OfferedTool] = ()) -> bool:
        """Whether messages, tools, a thought and the answer fit the context."""
        offered = [one.prompt_format for one in tools]
        prompt = await asyncio.to_thread(self.chat._engine.prompts.write, _chat(messages), offered)
        budget = _THOUGHT_TOKENS if self.thoughts.budget is None else self.thoughts.budget
        thought = budget if self.thoughts.thinks else 0
        return len(prompt.tokens) + thought + max_tokens <= self.chat._engine.context_size

    def sampling(self, **defaults: float | None) -> dict[str, Any]:
        """Return sampling options: the stage's defaults, overridden by the options of the role's model."""
        thinking = self.options.enable_thinking
        return super().sampling(**defaults) | ({} if thinking is None else {"enable_thinking": thinking})

    def text_answer_options(self, tools: Sequence[OfferedTool]) -> dict[str, Any]:
        """Return request options for a text answer, with these tools in the prompt."""
        return {"tools": [one.prompt_format for one in tools], "words_only": True}

    async def word_probabilities(
        self, messages: Sequence[BaseMessage], words: tuple[str, ...], *, max_tokens: int = 1, temperature: float = 0.0
    ) -> WordProbabilities:
        """Return the probabilities that the answer begins with each word; the model writes nothing."""
        message = await ask_chat(
            self.chat,
            messages,
            {"temperature": 0.0, "max_tokens": 1, "enable_thinking": False, "measured_words": words},
        )
        known: EngineAnswer = message.response_metadata["answer"]
        return WordProbabilities(known.word_probabilities, usage_of(message))

    async def call(
        self,
        messages: Sequence[BaseMessage],
        tools: Sequence[OfferedTool],
        *,
        max_calls: int,
        sampling: dict[str, Any],
        must_call: bool = False,
        caller: ChatCaller | None = None,
    ) -> ModelAnswer:
        """Ask once for calls of these tools; stop without a call if the answer begins with text."""
        callable_tools = tuple(one for one in tools if one.acts or not must_call)
        form = CallForm(callable_tools, self.chat._engine.prompts.syntax, max_calls)
        offered = [one.prompt_format for one in tools]
        message = await ask_chat(
            self.chat, messages, {**sampling, "form": form, "must_call": must_call, "tools": offered}
        )
        known: EngineAnswer = message.response_metadata["answer"]
        return ModelAnswer(
            calls=measured_calls(form.syntax, known),
            text="",
            usage=usage_of(message),
            cut_off=was_cut_off(message),
            call_probability=known.call_probability,
            widened_tools=known.widened_tools,
        )


def _chat(messages: Sequence[BaseMessage]) -> Chat:
    return as_chat(without_pictures(messages))


def measured_calls(syntax: CallSyntax, answer: EngineAnswer) -> tuple[WrittenCall, ...]:
    """Return the calls of an answer with the probabilities of their names and arguments."""
    text = answer.text
    spans = TokenSpans(text, [one.size for one in answer.tokens], [one.probability for one in answer.tokens])
    # control tokens at the beginning of the head have no text
    heads = (syntax.head[at:] for at in range(len(syntax.head)))
    read = syntax.read(text, next((head for head in heads if text.startswith(head)), None))
    return tuple(
        WrittenCall(
            one.name, one.arguments, spans.probability(*one.name_at), spans.value_probabilities(*one.arguments_at)
        )
        for one in read
    )
