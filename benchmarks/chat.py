"""Provide a base class of stand-in chat models that run no language model."""

from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable


class StandInChat(BaseChatModel):
    """Accepts any tools. A subclass writes the messages."""

    @property
    def _llm_type(self) -> str:
        return "stand-in"

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Runnable[Any, AIMessage]:
        """Return this model."""
        return self

    def reply(self, messages: Sequence[BaseMessage], **options: Any) -> AIMessage:
        """Return the model's next message."""
        raise NotImplementedError

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **options: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.reply(messages, **options))])
