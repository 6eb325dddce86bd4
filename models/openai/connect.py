"""Chat models behind OpenAI's protocol: OpenAI itself, or any server that speaks it. Imported when needed: slow."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import openai
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGenerationChunk
from langchain_openai import ChatOpenAI
from langchain_openai.chat_models.base import BaseChatOpenAI
from openai import BadRequestError, UnprocessableEntityError

from models.endpoint import Endpoint, shown
from models.transport import MAX_RETRIES
from state.errors import ModelError

CHECK_TIMEOUT_S = 5.0


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


def connect(name: str, endpoint: Endpoint) -> BaseChatOpenAI:
    """Return a chat model. Nothing is sent yet.

    Raises:
        ModelError: OpenAI itself is meant and there is no key.
    """
    kind = OpenAIChat if endpoint.is_openai else CompatibleChat
    return kind(
        model=name,
        base_url=endpoint.base_url,
        api_key=endpoint.key_for(name),
        timeout=endpoint.timeout,
        max_retries=MAX_RETRIES,
        stream_usage=True,
        stream_chunk_timeout=endpoint.timeout,
        use_responses_api=None if endpoint.is_openai else False,  # else names such as codex ask for it
        # A kept connection belongs to the event loop that opened it, and a model outlives `asyncio.run`.
        default_headers={"Connection": "close"},
    )


async def check_endpoint(asked: openai.AsyncOpenAI, endpoint: Endpoint) -> None:
    """Ask the endpoint for its models, for at most `CHECK_TIMEOUT_S`.

    Raises:
        ModelError: nothing answers there, it refuses the key, or it is broken.
    """
    where = shown(endpoint.base_url)
    client = asked.with_options(max_retries=0, timeout=CHECK_TIMEOUT_S)
    try:
        async with asyncio.timeout(CHECK_TIMEOUT_S):
            await client.models.list()
    except (openai.AuthenticationError, openai.PermissionDeniedError) as error:
        raise ModelError(f"{where} refuses the API key (HTTP {error.status_code}): check OPENAI_API_KEY") from error
    except openai.InternalServerError as error:
        raise ModelError(f"{where} answers HTTP {error.status_code}: try again later, or another base URL") from error
    except openai.APIStatusError:
        return  # it is there; not every compatible server lists its models
    except (TimeoutError, openai.APITimeoutError) as error:
        raise ModelError(
            f"{where} did not answer within {CHECK_TIMEOUT_S:g} s: check OPENAI_BASE_URL and the server"
        ) from error
    except openai.APIConnectionError as error:
        raise ModelError(
            f"{where} cannot be reached ({error.__cause__ or error}): check OPENAI_BASE_URL, "
            "and that the server is running"
        ) from error
