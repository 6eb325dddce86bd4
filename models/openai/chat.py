"""The chat models of langchain-openai, streaming also where usage cannot be had. Imported when first needed: slow."""

from collections.abc import AsyncIterator
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGenerationChunk
from langchain_openai import ChatOpenAI
from langchain_openai.chat_models.base import BaseChatOpenAI
from openai import BadRequestError, UnprocessableEntityError


class CompatibleChat(BaseChatOpenAI):
    """Any server that speaks OpenAI's protocol. They know the limit by its old name, `max_tokens`."""

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        """Stream; where the request is refused, try once more without asking for usage, and remember what worked."""
        try:
            async for chunk in super()._astream(messages, stop, run_manager, **kwargs):
                yield chunk
        except (BadRequestError, UnprocessableEntityError) as error:
            if not self.stream_usage:
                raise
            try:
                async for chunk in super()._astream(messages, stop, run_manager, **kwargs, stream_usage=False):
                    self.stream_usage = False
                    yield chunk
            except (BadRequestError, UnprocessableEntityError):
                raise error from error.__cause__


class OpenAIChat(CompatibleChat, ChatOpenAI):
    """OpenAI itself."""
