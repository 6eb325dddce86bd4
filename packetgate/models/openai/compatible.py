"""Models of OpenAI-compatible servers: tool calls and JSON answers."""

import asyncio
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from packetgate.models.model import CallAnswer, ChatCaller, FormAnswer, Model, OfferedTool, ask_chat, was_cut_off
from packetgate.models.openai.connect import CompatibleChat
from packetgate.models.openai.logprobs import measured_choices
from packetgate.models.options import ModelOptions
from packetgate.models.requests import usage_of
from packetgate.models.schemas import AnswerForm, Schema, map_schema, without_keywords
from packetgate.models.transport import error_text, is_refusal
from packetgate.state.errors import DecisionError, ToolsRefusedError

TOP_LOGPROBS = 20
"""Number of alternative tokens to request: OpenAI's limit."""


_LIMITS = frozenset(
    {"minLength", "maxLength", "pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
    | {"multipleOf", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "default", "examples"}
)
"""Keywords that some servers refuse or ignore."""
_ROOT = frozenset({"type", "properties", "required", "additionalProperties", "$defs", "definitions"})
"""Keywords that OpenAI accepts at the root of a tool's schema."""

MAX_TEXT_LIMIT, MAX_ITEM_LIMIT = 300, 30
"""Largest length limits that are sent: of texts, in characters, and of arrays."""
DESCRIPTION_CHARS = 1_024
"""Longest description of a tool that OpenAI accepts."""


class OpenAICompatible(Model):
    """A model at an OpenAI-compatible server. Features that the server refused are not requested again."""

    chat: CompatibleChat

    def __init__(self, chat: CompatibleChat, options: ModelOptions | None = None, *, is_openai: bool = False) -> None:
        super().__init__(chat, options)
        self.returns_calls = is_openai
        self.provider = "openai" if is_openai else None
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

    async def call(
        self,
        messages: Sequence[BaseMessage],
        tools: Sequence[OfferedTool],
        *,
        max_calls: int,
        sampling: dict[str, Any],
        must_call: bool = False,
        caller: ChatCaller | None = None,
    ) -> CallAnswer:
        """Ask for tool calls or text; ask again with simpler schemas if the server refuses the request."""
        options = {**sampling, "tool_choice": "required" if must_call else "auto"}
        if max_calls == 1:
            options["parallel_tool_calls"] = False
        refusal: DecisionError | None = None
        for plain in (True,) if self._refuses_schemas else (False, True):
            offered = [openai_tool(one, plain=plain) for one in tools]
            try:
                message = await (caller or ask_chat)(
                    self.chat, messages, {**options, "tools": offered}, double_timeout=True
                )
            except DecisionError as error:
                if not is_refusal(error.__cause__):
                    raise
                refusal = refusal or error
            else:
                self._refuses_schemas = plain
                return self.read_calls(message)
        cause = refusal.__cause__ if refusal else None
        if not cause or not any(word in error_text(cause).lower() for word in ("tool", "function")):
            raise refusal or DecisionError(f"{self.label} was not asked")
        self._refuses_tools = True
        raise ToolsRefusedError(str(refusal)) from cause

    async def answer(
        self, messages: Sequence[BaseMessage], form: AnswerForm, *, sampling: dict[str, Any]
    ) -> FormAnswer:
        """Ask for an answer that follows the form's JSON Schema; if the server refuses it, ask for any JSON object."""
        refusal: DecisionError | None = None
        for kind in ("json_object",) if form.name in self._without_schema else ("json_schema", "json_object"):
            as_schema = kind == "json_schema"
            body: dict[str, Any] = {
                "response_format": await asyncio.to_thread(schema_format, form) if as_schema else {"type": kind}
            }
            if form.choices:
                body |= {"logprobs": True, "top_logprobs": TOP_LOGPROBS}
            try:
                # `extra_body`, because langchain-openai fails on cut-off answers to its own `response_format`
                message = await ask_chat(self.chat, messages, {**sampling, "extra_body": body})
            except DecisionError as error:
                if refusal:
                    raise refusal from refusal.__cause__
                if not as_schema or not is_refusal(error.__cause__):
                    raise
                refusal = error
                continue
            if refusal:
                self._without_schema.add(form.name)
            text = _text_of(message)
            choices = await asyncio.to_thread(measured_choices, message, text, form.choices)
            return FormAnswer(text, usage_of(message), cut_off=was_cut_off(message), choices=choices)
        raise refusal or DecisionError(f"{self.label} was not asked")


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
    schema = without_large_limits(tool.parameters)
    if plain:
        schema = {key: value for key, value in without_keywords(schema, _LIMITS).items() if key in _ROOT}
    function = {"name": tool.name, "description": tool.description[:DESCRIPTION_CHARS], "parameters": schema}
    return {"type": "function", "function": function}
