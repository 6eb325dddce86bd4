"""Chat models behind OpenAI's protocol. Imported when needed: slow."""

import asyncio
import os
import warnings
from collections.abc import AsyncIterator, Mapping, Sequence
from types import NoneType
from typing import Any

import httpx2
import openai
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_openai import ChatOpenAI
from langchain_openai.chat_models.base import BaseChatOpenAI

from packetgate.models.decoding.values import once_decoded, whole_value
from packetgate.models.endpoint import Endpoint
from packetgate.models.openai.refusals import OTHER_NAMES, blamed, wishes_of, without
from packetgate.models.options import ModelOptions
from packetgate.models.pictures import has_pictures, names_pictures
from packetgate.models.transport import MAX_RETRIES, named_errors, retry_after, status_of
from packetgate.models.turns import seconds_left
from packetgate.state.errors import ConfigError, DecisionError, ModelError
from packetgate.state.printing import compact_json

CHECK_TIMEOUT_S = 5.0

# Of a refused schema the library warns with advice that is for programmers: what happens then is ours to decide.
warnings.filterwarnings("ignore", r"(.|\n)*OpenAI's structured output feature")


class CompatibleChat(BaseChatOpenAI):
    """Any server that speaks OpenAI's protocol, with `max_tokens` as the name of the limit."""

    key_variable: str = "OPENAI_API_KEY"
    always: Mapping[str, Any] = {}
    """Fields that the user adds to the body of every request."""
    wishes: Mapping[str, str] = {}
    """By parameter, which option of the user it is and where it was set."""
    refused: tuple[str, ...] = ()
    """Parameters that its server refused, in that order."""

    @property
    def unsent(self) -> frozenset[str]:
        """Parameters that are left out."""
        return frozenset(self.refused) - OTHER_NAMES.keys()

    def _get_request_payload(
        self,
        input_: LanguageModelInput,
        *,
        stop: list[str] | None = None,
        refused: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        payload: dict[str, Any] = super()._get_request_payload(input_, stop=stop, **kwargs)
        payload = without(payload, self.refused if refused is None else refused)
        payload["extra_body"] |= self.always
        return payload

    def _create_chat_result(
        self, response: dict[str, Any] | openai.BaseModel, generation_info: dict[str, Any] | None = None
    ) -> ChatResult:
        _encode_arguments(response)
        result = super()._create_chat_result(response, generation_info)
        choices = response["choices"] if isinstance(response, dict) else response.model_dump(warnings=False)["choices"]
        for generation, choice in zip(result.generations, choices, strict=False):
            _keep_thought(generation.message, choice["message"])
        return result

    def _convert_chunk_to_generation_chunk(
        self, chunk: dict[str, Any], default_chunk_class: type, base_generation_info: dict[str, Any] | None
    ) -> ChatGenerationChunk | None:
        made = super()._convert_chunk_to_generation_chunk(chunk, default_chunk_class, base_generation_info)
        if made and (choices := chunk.get("choices")):
            _keep_thought(made.message, choices[0]["delta"])
        return made

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        refused = self.refused
        while True:
            try:
                result = await super()._agenerate(messages, stop, run_manager, **kwargs, refused=refused)
            except openai.APIStatusError as error:
                refused = self._more_refused(error, refused, messages, kwargs)
            else:
                self._learn(refused)
                return result

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        refused, kwargs = self.refused, {"stream_options": {"include_usage": True}, **kwargs}
        while True:
            try:
                async for chunk in super()._astream(messages, stop, run_manager, **kwargs, refused=refused):
                    self._learn(refused)
                    yield chunk
            except openai.APIStatusError as error:
                refused = self._more_refused(error, refused, messages, kwargs)
            else:
                return

    def _learn(self, refused: tuple[str, ...]) -> None:
        if len(refused) > len(self.refused):  # a request that began before another one learned has less to tell
            self.refused = refused

    def _more_refused(
        self, error: openai.APIStatusError, refused: tuple[str, ...], messages: list[BaseMessage], asked: dict[str, Any]
    ) -> tuple[str, ...]:
        if has_pictures(messages) and names_pictures(error):
            raise error
        name = blamed(error, self._get_request_payload(messages, **asked, refused=refused), refused, self.wishes)
        if name is None:
            raise error
        return (*refused, name)


class OpenAIChat(CompatibleChat, ChatOpenAI):
    """OpenAI itself."""


def _encode_arguments(response: Any) -> None:
    for choice in getattr(response, "choices", None) or ():
        for call in getattr(choice.message, "tool_calls", None) or ():
            given = call.function.arguments
            text = once_decoded(given) if isinstance(given, str) else given and compact_json(given)
            call.function.arguments = f"({text})" if text and _is_other_json(text) else text


def _is_other_json(text: str) -> bool:
    try:
        return not isinstance(whole_value(text), dict | NoneType)
    except ValueError:
        return False


def _keep_thought(message: BaseMessage, said: dict[str, Any]) -> None:
    thought = said.get("reasoning_content") or said.get("reasoning")
    if isinstance(thought, str):
        message.additional_kwargs["reasoning_content"] = thought


def connect(
    name: str, endpoint: Endpoint, options: ModelOptions | None = None, places: Mapping[str, str] | None = None
) -> CompatibleChat:
    """Return a chat model; nothing is sent yet.

    Args:
        places: where each option was set.

    Raises:
        ModelError: OpenAI has no key.
        ConfigError: `enable_thinking` is set for OpenAI, which has no chat template.
    """
    options = options or ModelOptions()
    kind = OpenAIChat if endpoint.is_openai else CompatibleChat
    return kind(
        model=name,
        base_url=endpoint.base_url,
        api_key=endpoint.key_for(name),
        timeout=endpoint.timeout,
        max_retries=MAX_RETRIES,
        stream_chunk_timeout=endpoint.timeout,
        use_responses_api=None if endpoint.is_openai else False,  # else names such as codex ask for it
        # A kept connection belongs to the event loop that opened it, and a model outlives `asyncio.run`.
        default_headers={"Connection": "close", **(options.headers or {})},
        reasoning_effort=options.reasoning_effort,
        key_variable=endpoint.key_variable,
        always=_always(name, endpoint, options),
        wishes=wishes_of(options, places or {}),
        http_async_client=openai.DefaultAsyncHttpxClient(
            timeout=endpoint.timeout, proxy=os.environ.get("OPENAI_PROXY"), event_hooks={"response": [_heed]}
        ),
        openai_proxy="",  # the client above has it
        http_socket_options=(),  # else a warning goes to stderr where a proxy is set
    )


async def _heed(response: httpx2.Response) -> None:
    """Stop retries that would exceed the time limit: the library waits for up to two minutes."""
    if retry_after(response.headers) > seconds_left():
        response.headers["x-should-retry"] = "false"


def _always(name: str, endpoint: Endpoint, options: ModelOptions) -> dict[str, Any]:
    body: dict[str, Any] = dict(options.extra_body or {})
    if options.enable_thinking is None:
        return body
    if endpoint.is_openai:
        raise ConfigError(f"openai:{name}: enable_thinking is for servers with chat templates: use reasoning_effort")
    template = body.get("chat_template_kwargs")
    known = template if isinstance(template, dict) else {}
    return body | {"chat_template_kwargs": {"enable_thinking": options.enable_thinking, **known}}


async def check_endpoint(model: object, client: openai.AsyncOpenAI) -> None:
    """Check that an endpoint answers, for at most `CHECK_TIMEOUT_S`.

    Raises:
        ModelError: nothing answers, the key is refused, or the server fails.
    """
    try:
        with named_errors(model, lambda: f"{CHECK_TIMEOUT_S:g} s were not enough: check the base URL and the server"):
            async with asyncio.timeout(CHECK_TIMEOUT_S):
                await client.with_options(max_retries=0, timeout=CHECK_TIMEOUT_S).models.list()
    except DecisionError as error:
        status = status_of(error.__cause__)
        if status is None or status in {401, 403} or status >= 500:
            raise ModelError(str(error)) from error.__cause__
        # else it is there: not every compatible server lists its models
