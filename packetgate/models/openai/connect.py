"""Chat models at OpenAI-compatible servers. Slow to import, so other modules import it only when needed."""

import json
import os
import re
import warnings
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any

import openai
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_openai import ChatOpenAI
from langchain_openai.chat_models.base import BaseChatOpenAI

from packetgate.models.model import PICTURES_REFUSED
from packetgate.models.openai.servers import Endpoint
from packetgate.models.options import ModelOptions
from packetgate.models.pictures import picture_names, without_pictures
from packetgate.models.transport import MAX_RETRIES, error_text, is_refusal
from packetgate.state.errors import ConfigError
from packetgate.state.printing import shorten

_OPTIONAL = ("temperature", "top_p", "logprobs", "top_logprobs", "stream_options", "parallel_tool_calls")
"""Parameters that are left out if the server refuses them."""
_LIMIT, _NEW_LIMIT = "max_tokens", "max_completion_tokens"

# langchain-openai warns about a refused schema with advice that users cannot follow.
warnings.filterwarnings("ignore", r"(.|\n)*OpenAI's structured output feature")


def _unwrap_arguments(response: Any) -> None:
    """Decode call arguments from a JSON string, and mark JSON that is not an object: LangChain fails at both."""
    for choice in getattr(response, "choices", None) or ():
        for call in getattr(choice.message, "tool_calls", None) or ():
            with suppress(ValueError, AttributeError, TypeError):
                inner = json.loads(call.function.arguments)
                if isinstance(inner, str):
                    call.function.arguments = inner
                elif inner and not isinstance(inner, dict):
                    call.function.arguments += " is no object"


class CompatibleChat(BaseChatOpenAI):
    """A chat model at any OpenAI-compatible server; the length limit is sent as `max_tokens`.

    Optional parameters that the server refused are no longer sent. Refused images are replaced by descriptions.
    """

    key_variable: str = "OPENAI_API_KEY"
    user_body: Mapping[str, Any] = {}
    """Fields that the user's options add to the body of every request."""
    set_by_user: frozenset[str] = frozenset()
    """Parameters from the user's options, which are always sent."""
    vision: bool | None = None
    """Whether the model accepts images; None: images are tried in each request."""
    accepted_images: bool = False
    refused_parameters: set[str] = set()
    """Parameters that the server refused."""
    refused_in_streams: set[str] = set()
    """Parameters that the server refused in a streamed request."""
    measures_streams: bool = False
    """Whether the server accepted a streamed request for token probabilities."""

    def _get_request_payload(
        self, input_: LanguageModelInput, *, stop: list[str] | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        payload: dict[str, Any] = super()._get_request_payload(input_, stop=stop, **kwargs)
        body = {**(payload.pop("extra_body", None) or {}), **self.user_body}
        if _LIMIT in self.refused_parameters and _LIMIT in payload:
            body[_NEW_LIMIT] = payload[_LIMIT]
        refused = self.refused_parameters | (self.refused_in_streams if payload.get("stream") else set())
        payload = {name: value for name, value in payload.items() if name not in refused}
        return payload | {"extra_body": {name: value for name, value in body.items() if name not in refused}}

    def _create_chat_result(
        self, response: dict[str, Any] | openai.BaseModel, generation_info: dict[str, Any] | None = None
    ) -> ChatResult:
        if not isinstance(response, dict):
            _unwrap_arguments(response)
        result = super()._create_chat_result(response, generation_info)
        choices = response["choices"] if isinstance(response, dict) else response.model_dump(warnings=False)["choices"]
        for generation, choice in zip(result.generations, choices, strict=False):
            _keep_fields(generation.message, choice["message"])
        return result

    def _convert_chunk_to_generation_chunk(
        self, chunk: dict[str, Any], default_chunk_class: type, base_generation_info: dict[str, Any] | None
    ) -> ChatGenerationChunk | None:
        made = super()._convert_chunk_to_generation_chunk(chunk, default_chunk_class, base_generation_info)
        if made and (choices := chunk.get("choices")):
            _keep_fields(made.message, choices[0]["delta"])
        return made

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        sent, refusal = self._first_attempt(messages), ""
        while True:
            try:
                result = await super()._agenerate(sent, stop, run_manager, **kwargs)
                break
            except openai.APIStatusError as error:
                sent, refusal = self._next_attempt(error, sent, kwargs, refusal)
        self._record_refusal(sent, result.generations[0].message, refusal)
        return result

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        sent, refusal = self._first_attempt(messages), ""
        kwargs = {"stream_options": {"include_usage": True}, **kwargs}
        while True:
            begun = False
            try:
                async for chunk in super()._astream(sent, stop, run_manager, **kwargs):
                    if not begun:
                        self._record_refusal(sent, chunk.message, refusal)
                        refused = self.refused_parameters | self.refused_in_streams
                        self.measures_streams |= "logprobs" in {*kwargs.get("extra_body", {})} - refused
                    begun = True
                    yield chunk
            except openai.APIStatusError as error:
                if begun:
                    raise
                sent, refusal = self._next_attempt(error, sent, {**kwargs, "stream": True}, refusal)
            else:
                return

    def _first_attempt(self, messages: list[BaseMessage]) -> list[BaseMessage]:
        return without_pictures(messages) if self.vision is False else messages

    def _next_attempt(
        self, error: openai.APIStatusError, sent: list[BaseMessage], kwargs: dict[str, Any], refusal: str
    ) -> tuple[list[BaseMessage], str]:
        """Return the messages of the next attempt and why images were refused; raise `error` at the end."""
        name = self._refused_parameter(error, self._get_request_payload(sent, **kwargs))
        if name and "logprobs" in name:
            known = self.refused_in_streams if kwargs.get("stream") else self.refused_parameters
            known |= {"logprobs", "top_logprobs"}
        elif name:
            self.refused_parameters.add(name)
        elif picture_names(sent) and is_refusal(error):
            refusal = f"images were refused: HTTP {error.status_code}: {shorten(error_text(error), 300)}"
            sent = without_pictures(sent)
        else:
            raise error
        return sent, refusal

    def _refused_parameter(self, error: openai.APIStatusError, payload: dict[str, Any]) -> str | None:
        sent, text = {*payload, *payload["extra_body"]} - self.set_by_user, f"{error.param} {error_text(error)}"
        if error.status_code not in {400, 422}:
            return None
        if _LIMIT in sent and _NEW_LIMIT in text:
            return _LIMIT
        return next((one for one in _OPTIONAL if one in sent and re.search(rf"(?<!\w){one}(?!\w)", text)), None)

    def _record_refusal(self, sent: list[BaseMessage], answer: BaseMessage, refusal: str) -> None:
        self.accepted_images |= bool(picture_names(sent))
        if refusal:
            answer.response_metadata[PICTURES_REFUSED] = refusal


class OpenAIChat(CompatibleChat, ChatOpenAI):
    """A chat model of OpenAI's own API."""


def _keep_fields(message: BaseMessage, sent: dict[str, Any]) -> None:
    """Copy the fields that langchain-openai leaves out: thoughts, and refusals in streamed pieces."""
    thought = sent.get("reasoning_content") or sent.get("reasoning")
    fields = {"reasoning_content": thought, "refusal": sent.get("refusal")}
    message.additional_kwargs |= {name: text for name, text in fields.items() if isinstance(text, str)}


def connect(name: str, endpoint: Endpoint, options: ModelOptions | None = None) -> CompatibleChat:
    """Return a chat model; nothing is sent yet.

    Raise ModelError if OpenAI has no key, and ConfigError if `enable_thinking` is set for OpenAI, which has no chat
    template.
    """
    options = options or ModelOptions()
    kind = OpenAIChat if endpoint.is_openai else CompatibleChat
    user_body = _user_body(name, endpoint, options)
    return kind(
        model=name,
        base_url=endpoint.base_url,
        api_key=endpoint.key_for(name),
        timeout=endpoint.timeout,
        max_retries=MAX_RETRIES,
        stream_chunk_timeout=endpoint.timeout,
        # False: some model names would enable the Responses API
        use_responses_api=None if endpoint.is_openai else False,
        # An open connection belongs to one event loop, and the model is used from several.
        default_headers={"Connection": "close"},
        reasoning_effort=options.reasoning_effort,
        key_variable=endpoint.key_variable,
        user_body=user_body,
        set_by_user=frozenset({*options.sampling, *user_body}),
        vision=options.vision,
        http_async_client=openai.DefaultAsyncHttpxClient(
            timeout=endpoint.timeout, proxy=os.environ.get("OPENAI_PROXY")
        ),
        openai_proxy="",  # `http_async_client` has the proxy
        http_socket_options=(),  # prevents a warning on stderr if a proxy is set
    )


def _user_body(name: str, endpoint: Endpoint, options: ModelOptions) -> dict[str, Any]:
    body: dict[str, Any] = dict(options.extra_body or {})
    if options.enable_thinking is None:
        return body
    if endpoint.is_openai:
        raise ConfigError(f"openai:{name}: enable_thinking needs a server with chat templates: use reasoning_effort")
    template = body.get("chat_template_kwargs")
    known = template if isinstance(template, dict) else {}
    return body | {"chat_template_kwargs": {"enable_thinking": options.enable_thinking, **known}}
