"""Models of OpenAI-compatible servers."""

import re
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from packetgate.models.model import ChatCaller, Model, ModelAnswer, OfferedTool, ask_chat
from packetgate.models.openai.connect import CompatibleChat
from packetgate.models.openai.servers import is_local_url
from packetgate.models.options import ModelOptions
from packetgate.models.schemas import Schema, map_schema, without_keywords
from packetgate.models.token_probabilities import TOP_LOGPROBS
from packetgate.models.transport import error_text, is_refusal
from packetgate.state.errors import DecisionError

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
        self._refuses_schemas = False

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
        """Ask for calls or text; if the server refuses the tools, ask with simpler schemas, and then in words."""
        ask_slowly = partial(caller or ask_chat, double_timeout=True)
        measured = {**sampling, **_measuring(_CALL_LOGPROBS)}

        async def ask(plain: bool) -> AIMessage:
            options: dict[str, Any] = {"tool_choice": "required" if must_call else "auto"}
            options |= {"parallel_tool_calls": False} if max_calls == 1 else {}
            offered = [openai_tool(one, plain=plain) for one in tools]
            return await ask_slowly(self.chat, messages, {**measured, **options, "tools": offered})

        if self.uses_tool_calling:
            try:
                self._refuses_schemas, message = await _first_accepted(ask, only_simple=self._refuses_schemas)
                return self.read_calls(message, tools)
            except DecisionError as error:
                cause = error.__cause__
                if cause is None or not is_refusal(cause) or not _NAMES_TOOLS.search(error_text(cause)):
                    raise
                self._refuses_tools = True
        return await super().call(
            messages, tools, max_calls=max_calls, sampling=measured, must_call=must_call, caller=ask_slowly
        )


def _measuring(alternatives: int) -> dict[str, Any]:
    # `extra_body`, because langchain-openai's client of the Responses API has no such parameters
    return {"extra_body": {"logprobs": True, "top_logprobs": alternatives}}


async def _first_accepted(ask: Callable[[bool], Awaitable[AIMessage]], *, only_simple: bool) -> tuple[bool, AIMessage]:
    """Ask, and ask more simply if the server refuses; return whether the answer is to the simpler request."""
    refusals: list[DecisionError] = []
    for simple in (True,) if only_simple else (False, True):
        try:
            return simple, await ask(simple)
        except DecisionError as error:
            if not is_refusal(error.__cause__):
                raise
            refusals.append(error)
    raise refusals[0]


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


def openai_tool(tool: OfferedTool, *, plain: bool) -> dict[str, Any]:
    """Return a tool for a request; with `plain`, its schema has only names and types of arguments."""
    schema = without_large_limits(tool.prompt_schema or tool.parameters)
    if plain:
        schema = {key: value for key, value in without_keywords(schema, _LIMITS).items() if key in _ROOT}
    function = {"name": tool.name, "description": tool.description[:DESCRIPTION_CHARS], "parameters": schema}
    return {"type": "function", "function": function}
