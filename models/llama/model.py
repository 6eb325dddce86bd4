"""A GGUF file as a LangChain chat model, and as the deciders use it.

A grammar holds every token of an answer to its form, and the logits tell how sure the model was.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, convert_to_openai_messages
from langchain_core.messages.ai import InputTokenDetails, UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import PrivateAttr

from models.forms import AnswerForm
from models.llama.engine import Answer, LlamaEngine, Request
from models.llama.prompt import Chat
from models.model import FormAnswer, LocalModelInfo, Model, ask, was_cut_off
from models.requests import usage_of

SAMPLING = frozenset(
    {"temperature", "top_p", "top_k", "min_p", "max_tokens", "seed"}
    | {"repeat_penalty", "frequency_penalty", "presence_penalty"}
)
"""The keyword arguments of `invoke` and `bind` that llama.cpp takes; others are left to other models.

Beside them, `form`, an `AnswerForm`, holds the answer to that form.
"""

COUNTS = 2048
"""Texts whose length is remembered: most of a turn's are the last turn's tools again."""


class LlamaCppChat(BaseChatModel):
    """A GGUF model in this process. Requests queue, in order; a cancelled one stops at its next token."""

    model_name: str
    """The file's name, as shown in messages."""
    max_tokens: int = 1024
    """Longest answer, in tokens, where a request names no limit of its own."""
    temperature: float = 0.7
    _engine: LlamaEngine = PrivateAttr()

    def __init__(self, engine: LlamaEngine, **fields: Any) -> None:
        super().__init__(**{"model_name": engine.name, **fields})
        self._engine = engine

    @classmethod
    def load(cls, path: str, options: Mapping[str, int] | None = None) -> "LlamaCppChat":
        """Load a GGUF file. Blocking, for seconds.

        Raises:
            ModelError: llama-cpp-python is not installed, or the file cannot be loaded.
        """
        return cls(LlamaEngine(path, options))

    @property
    def _llm_type(self) -> str:
        return "llamacpp"

    @property
    def local_info(self) -> LocalModelInfo:
        """What the file and its context are."""
        return self._engine.local_info

    def get_num_tokens(self, text: str) -> int:
        """Return how many tokens of the model's vocabulary the text takes, read as plain text. For any thread."""
        return len(self._engine.weights.tokenize(text, special=False))

    def prompt_length(self, messages: Sequence[BaseMessage]) -> int:
        """Return how many tokens the messages take as a prompt.

        Raises:
            DecisionError: the model's chat template refuses them.
        """
        return self._engine.prompt_length(_chat(messages))

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        request = self._request(messages, stop, kwargs)
        try:
            return _result(self._engine.submit(request).result())
        finally:
            request.cancelled.set()

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        request = self._request(messages, stop, kwargs)
        try:
            return _result(await asyncio.wrap_future(self._engine.submit(request)))
        finally:
            request.cancelled.set()

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        loop = asyncio.get_running_loop()
        pieces: asyncio.Queue[str | None] = asyncio.Queue()
        cancelled = threading.Event()

        def put(piece: str | None) -> None:
            if not cancelled.is_set():
                loop.call_soon_threadsafe(pieces.put_nowait, piece)

        request = replace(self._request(messages, stop, kwargs), cancelled=cancelled, on_text=put)
        future = self._engine.submit(request)
        future.add_done_callback(lambda _: put(None))
        try:
            while (piece := await pieces.get()) is not None:
                chunk = ChatGenerationChunk(message=AIMessageChunk(content=piece))
                if run_manager:
                    await run_manager.on_llm_new_token(piece, chunk=chunk)
                yield chunk
            answer = future.result()
        finally:
            cancelled.set()
            future.cancel()
        last = AIMessageChunk(content="", usage_metadata=_usage(answer), chunk_position="last")
        yield ChatGenerationChunk(message=last, generation_info={"finish_reason": answer.finish_reason})

    def _request(self, messages: Sequence[BaseMessage], stop: list[str] | None, kwargs: Mapping[str, Any]) -> Request:
        given = {name: value for name, value in kwargs.items() if name in SAMPLING and value is not None}
        return Request(
            chat=_chat(messages),
            sampling={"max_tokens": self.max_tokens, "temperature": self.temperature, **given},
            stop=tuple(stop or ()),
            form=kwargs.get("form"),
        )


class LlamaCppModel(Model):
    """A GGUF model in this process."""

    chat: LlamaCppChat

    def __init__(self, chat: LlamaCppChat) -> None:
        super().__init__(chat)
        self._count = lru_cache(COUNTS)(chat.get_num_tokens)

    @classmethod
    def load(cls, path: str, options: Mapping[str, int] | None = None) -> "LlamaCppModel":
        """Load a GGUF file. Blocking, for seconds.

        Raises:
            ModelError: llama-cpp-python is not installed, or the file cannot be loaded.
        """
        return cls(LlamaCppChat.load(path, options))

    @property
    def local_info(self) -> LocalModelInfo:
        """What the file and its context are."""
        return self.chat.local_info

    @property
    def provider(self) -> str:
        """The library that runs it."""
        return "llama.cpp"

    @property
    def token_counter(self) -> Callable[[str], int]:
        """Counts the tokens of a text, read as plain text whatever it says, beside whatever the model is doing."""
        return self._count

    async def fits(self, messages: Sequence[BaseMessage], max_tokens: int) -> bool:
        """Whether the messages and an answer of that length go into the model's context.

        Raises:
            DecisionError: the model's chat template refuses the messages.
        """
        return await asyncio.to_thread(self.chat.prompt_length, messages) + max_tokens <= self.local_info.context_size

    async def answer(
        self, messages: Sequence[BaseMessage], form: AnswerForm, *, sampling: dict[str, Any]
    ) -> FormAnswer:
        """Ask once for an answer in this form, and measure its choices.

        Raises:
            DecisionError: the prompt does not fit the model's context, or llama.cpp fails.
        """
        message = await ask(self.chat, messages, {**sampling, "form": form})
        known = message.response_metadata
        return FormAnswer(
            message.text,
            usage_of(message),
            held_by="grammar",
            cut_off=was_cut_off(message),
            choices=known["choices"],
            widened=known["widened"],
            timing=known["timing"],
        )


def _chat(messages: Sequence[BaseMessage]) -> Chat:
    chat: Chat = convert_to_openai_messages(messages, text_format="string")
    return chat


def _result(answer: Answer) -> ChatResult:
    message = AIMessage(content=answer.text, usage_metadata=_usage(answer))
    info = {
        "finish_reason": answer.finish_reason,
        "choices": answer.choices,
        "widened": answer.widened,
        "timing": answer.timing,
    }
    return ChatResult(generations=[ChatGeneration(message=message, generation_info=info)])


def _usage(answer: Answer) -> UsageMetadata:
    return UsageMetadata(
        input_tokens=answer.input_tokens,
        output_tokens=answer.output_tokens,
        total_tokens=answer.input_tokens + answer.output_tokens,
        input_token_details=InputTokenDetails(cache_read=answer.cached_tokens),
    )
