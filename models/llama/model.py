"""Answers in a form from llama.cpp: a grammar holds every token, and the logits tell how sure the model was."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from langchain_core.messages import BaseMessage

from models.forms import AnswerForm
from models.llama.chat import LlamaCppChat
from models.model import FormAnswer, LocalModelInfo, Model, ask, was_cut_off
from models.requests import usage_of

COUNTS = 2048
"""Texts whose length is remembered: most of a turn's are the last turn's tools again."""


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
