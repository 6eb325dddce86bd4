"""Models of OpenAI-compatible servers: tool calls and JSON answers."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from packetgate.models.model import ChatCaller, Model, ModelAnswer, OfferedTool, ask_chat, was_cut_off
from packetgate.models.openai.connect import CompatibleChat
from packetgate.models.openai.servers import is_local_url
from packetgate.models.options import ModelOptions
from packetgate.models.schemas import AnswerForm, Schema, map_schema, without_keywords
from packetgate.models.thoughts import usage_of
from packetgate.models.token_probabilities import TOP_LOGPROBS
from packetgate.models.transport import error_text, is_refusal
from packetgate.state.errors import DecisionError, ToolsRefusedError

_LIMITS = frozenset(
    {"minLength", "maxLength", "pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
    | {"multipleOf", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "default", "examples"}
)
"""Keywords that some servers refuse or ignore."""
_ROOT = frozenset({"type", "properties", "required", "additionalProperties", "$defs", "definitions"})
"""Keywords that OpenAI accepts at the root of a tool's schema."""

_CALL_LOGPROBS = 5
"""Number of alternatives to each token of an answer that may be long."""
MAX_TEXT_LIMIT, MAX_ITEM_LIMIT = 300, 30
"""Largest length limits that are sent: of texts, in characters, and of arrays."""
DESCRIPTION_CHARS = 1_024
"""Longest description of a tool that OpenAI accepts."""
_NAMES_TOOLS = re.compile("tool|function", re.IGNORECASE)


class OpenAICompatible(Model):
    """A model at an OpenAI-compatible server. Features that the server refused are not requested again."""

    chat: CompatibleChat

    def __init__(self, chat: CompatibleChat, options: ModelOptions | None = None, *, is_openai: bool = False) -> None:
        super().__init__(chat, options)
        self.returns_calls = is_openai
        self.runs_here = is_local_url(chat.openai_api_base or "")
        self._refuses_tools = self._refuses_schemas = False
        self._without_schema: set[str] = set()  # forms whose schema was refused

    @property
    def uses_tool_calling(self) -> bool:
        """Whether to offer tools by tool calling. False after the server refused them."""
        return self.options.native_tools is not False and not self._refuses_tools

    @property
    def accepts_images(self) -> bool | None:
        """Whether the model accepts images; None: not known."""
        return self.options.vision if self.options.vision is not None else self.chat.accepted_images or None

    @property
    def probability_options(self) -> dict[str, Any]:
        """Request options for token probabilities."""
        return _measuring(TOP_LOGPROBS)

    @property
    def measures_streamed_calls(self) -> bool:
        """Whether streamed answers have token probabilities, as far as is known."""
        return self.chat.measures_streams

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
        """Ask for tool calls or text; ask again with simpler schemas if the server refuses the request."""
        options = {**sampling, **_measuring(_CALL_LOGPROBS), "tool_choice": "required" if must_call else "auto"}
        if max_calls == 1:
            options["parallel_tool_calls"] = False

        async def ask(plain: bool) -> AIMessage:
            offered = {"tools": [openai_tool(one, plain=plain) for one in tools]}
            return await (caller or ask_chat)(self.chat, messages, options | offered, double_timeout=True)

        try:
            self._refuses_schemas, message = await _first_accepted(ask, only_simple=self._refuses_schemas)
        except DecisionError as error:
            cause = error.__cause__
            if cause is None or not is_refusal(cause) or not _NAMES_TOOLS.search(error_text(cause)):
                raise
            self._refuses_tools = True
            raise ToolsRefusedError(str(error)) from cause
        return self.read_calls(message, tools)

    async def answer(
        self, messages: Sequence[BaseMessage], form: AnswerForm, *, sampling: dict[str, Any]
    ) -> ModelAnswer:
        """Ask for an answer that follows the form's JSON Schema; if the server refuses it, ask for any JSON object."""

        async def ask(plain: bool) -> AIMessage:
            format_ = {"type": "json_object"} if plain else await asyncio.to_thread(schema_format, form)
            # `extra_body`, because langchain-openai fails on cut-off answers to its own `response_format`
            return await ask_chat(self.chat, messages, {**sampling, "extra_body": {"response_format": format_}})

        plain, message = await _first_accepted(ask, only_simple=form.name in self._without_schema)
        if plain:
            self._without_schema.add(form.name)
        return ModelAnswer(_text_of(message), usage_of(message), cut_off=was_cut_off(message))


def _measuring(alternatives: int) -> dict[str, Any]:
    # `extra_body`, because langchain-openai's client of the Responses API has no such parameters
    return {"extra_body": {"logprobs": True, "top_logprobs": alternatives}}


async def _first_accepted(ask: Callable[[bool], Awaitable[AIMessage]], *, only_simple: bool) -> tuple[bool, AIMessage]:
    """Ask, and ask more simply if the server refuses the request; return whether the answer is to the simpler one."""
    refusals: list[DecisionError] = []
    for simple in (True,) if only_simple else (False, True):
        try:
            return simple, await ask(simple)
        except DecisionError as error:
            if not is_refusal(error.__cause__):
                raise
            refusals.append(error)
    raise refusals[0]


def _text_of(message: AIMessage) -> str:
    if message.text.strip() or was_cut_off(message):
        return message.text
    return str(message.additional_kwargs.get("reasoning_content", ""))  # some servers return the answer as a thought


def without_large_limits(schema: Schema) -> Schema:
    """Return the schema without large limits, which can make a server's grammar fail."""
    most = {
        "minLength": MAX_TEXT_LIMIT,
        "maxLength": MAX_TEXT_LIMIT,
        "minItems": MAX_ITEM_LIMIT,
        "maxItems": MAX_ITEM_LIMIT,
    }

    def change(one: Schema) -> Schema:
        return {
            key: value
            for key, value in one.items()
            if key not in most or (isinstance(value, int) and value <= most[key])
        }

    changed: Schema = map_schema(schema, change)
    return changed


def schema_format(form: AnswerForm) -> dict[str, Any]:
    """Return the `response_format` that enforces the form of an answer."""
    return {"type": "json_schema", "json_schema": {"name": form.name, "schema": without_large_limits(form.schema())}}


def openai_tool(tool: OfferedTool, *, plain: bool) -> dict[str, Any]:
    """Return a tool for a request; with `plain`, its schema has only names and types of arguments."""
    schema = without_large_limits(tool.prompt_schema or tool.parameters)
    if plain:
        schema = {key: value for key, value in without_keywords(schema, _LIMITS).items() if key in _ROOT}
    function = {"name": tool.name, "description": tool.description[:DESCRIPTION_CHARS], "parameters": schema}
    return {"type": "function", "function": function}
