"""Models of OpenAI-compatible servers: tool calls, and answers in a form."""

import asyncio
from collections.abc import Sequence
from typing import Any

from jsonschema_rs import validator_for
from langchain_core.messages import AIMessage, BaseMessage

from packetgate.models.calling import CallAnswer, OfferedTool
from packetgate.models.model import Asking, FormAnswer, Model, ask, was_cut_off
from packetgate.models.openai.connect import CompatibleChat
from packetgate.models.openai.logprobs import measure, whole_object
from packetgate.models.openai.refusals import refuses_form, refuses_type, says_form
from packetgate.models.openai.request_modes import RequestMode, modes_for
from packetgate.models.openai.schemas import shape_of, tool_of
from packetgate.models.options import ModelOptions
from packetgate.models.pictures import has_pictures, names_pictures
from packetgate.models.requests import usage_of
from packetgate.models.schemas import AnswerForm
from packetgate.models.transport import status_of
from packetgate.state.errors import DecisionError, ToolsRefusedError
from packetgate.state.printing import compact_json

TOOL_REFUSALS = 2
"""Refusals of tools, with none accepted, after which tools are no longer offered."""


class OpenAICompatible(Model):
    """A model behind OpenAI's protocol. What its server refuses or ignores is not tried again."""

    chat: CompatibleChat

    def __init__(self, chat: CompatibleChat, options: ModelOptions | None = None, *, is_openai: bool = False) -> None:
        super().__init__(chat, options)
        self._is_openai = self.returns_calls = is_openai
        self.provider = "openai" if is_openai else None
        if is_openai or self.options.enable_thinking is False:
            self.thoughts.opened = False  # OpenAI shows none, and elsewhere the template is told to have none
        self._modes: dict[str, RequestMode] = {}  # by form, the strongest that its server was seen to take
        self._takes_tools, self._takes_schemas = False, True
        self._refusals, self._refused_last = 0, False

    @property
    def calls_tools(self) -> bool:
        """Whether tools are offered: not to a server that repeatedly refused them."""
        return self.options.native_tools is not False and (self._takes_tools or self._refusals < TOOL_REFUSALS)

    async def call(
        self,
        messages: Sequence[BaseMessage],
        tools: Sequence[OfferedTool],
        *,
        most: int,
        sampling: dict[str, Any],
        must: bool = False,
        asking: Asking | None = None,
    ) -> CallAnswer:
        """Ask for calls or words; ask again with plainer schemas if they are refused."""
        options = {**sampling, "tool_choice": "required" if must else "auto"}
        if most == 1:
            options["parallel_tool_calls"] = False
        refusal: DecisionError | None = None
        for whole in (True, False) if self._takes_schemas else (False,):
            offered = [tool_of(one, whole=whole, is_openai=self._is_openai) for one in tools]
            try:
                message = await (asking or ask)(self.chat, messages, {**options, "tools": offered}, patient=True)
            except DecisionError as error:
                if has_pictures(messages) and names_pictures(error.__cause__):
                    raise
                if not refuses_form(error.__cause__, self.chat.wishes):
                    raise
                refusal = refusal or error
            else:
                self._takes_tools, self._takes_schemas = True, whole
                self.thoughts.learn_opening([message])
                return self.read_calls(message)
        self._refused_last = True
        raise ToolsRefusedError(str(refusal)) from refusal and refusal.__cause__

    async def answer(
        self, messages: Sequence[BaseMessage], form: AnswerForm, *, sampling: dict[str, Any]
    ) -> FormAnswer:
        """Ask for an answer in this form; ask again by weaker means if they are refused."""
        modes = await asyncio.to_thread(modes_for, form, is_openai=self._is_openai)
        known = self._modes.get(form.name)
        modes = modes[modes.index(known) :] if known in modes else modes
        message, at = await self._ask(messages, form, sampling, modes)
        self._refusals += self._refused_last  # it was the tools that it refused, and not any request
        self._refused_last = False
        self.thoughts.learn_opening([message])
        answer, ignored = await asyncio.to_thread(_read, message, modes[at], form, is_openai=self._is_openai)
        if ignored and not self._is_openai:  # OpenAI does keep schemas, but outside its strict mode only mostly
            at = _next_format(modes, at)
        if at:
            self._modes[form.name] = modes[at]
        return answer

    async def _ask(
        self, messages: Sequence[BaseMessage], form: AnswerForm, sampling: dict[str, Any], modes: Sequence[RequestMode]
    ) -> tuple[AIMessage, int]:
        refusal: DecisionError | None = None
        at = 0
        while True:
            # where the server did not say what it refuses, it was asked without probabilities too, and refused that
            measured = not refusal or says_form(refusal.__cause__)
            options = modes[at].options(form, sampling, is_openai=self._is_openai, measured=measured)
            try:
                return await ask(self.chat, messages, options), at
            except DecisionError as error:
                if has_pictures(messages) and names_pictures(error.__cause__):
                    raise
                refusal = refusal or error
                if at + 1 == len(modes) or not refuses_form(error.__cause__, self.chat.wishes):
                    told = refusal if status_of(error.__cause__) == status_of(refusal.__cause__) else error
                    raise told from told.__cause__
                at = _next_format(modes, at) if refuses_type(error.__cause__) else at + 1


def _next_format(modes: Sequence[RequestMode], at: int) -> int:
    return next(later for later, mode in enumerate(modes) if later > at and mode.format != modes[at].format)


def _read(message: AIMessage, mode: RequestMode, form: AnswerForm, *, is_openai: bool) -> tuple[FormAnswer, bool]:
    called = _called(message, form.name)
    cut_off = was_cut_off(message)
    text = str(message.text)
    if called is not None and (mode.held_by == "tool_call" or not text.strip()):
        text = called
    elif not text.strip() and not cut_off:  # some servers take all of an answer for its thought
        text = message.additional_kwargs.get("reasoning_content", "")
    if mode.held_by == "tool_call":
        ignored = called is None
    else:
        ignored = mode.shows_schema and not cut_off and not _has_shape(text, form)
    answer = FormAnswer(
        text,
        usage_of(message),
        held_by="prompt" if ignored else mode.held_by,
        cut_off=cut_off,
        choices=measure(message, text, form.choices),
        widened=mode.open_parts(form, is_openai=is_openai),
    )
    return answer, ignored and not cut_off


def _has_shape(text: str, form: AnswerForm) -> bool:
    value = whole_object(text)
    return value is not None and validator_for(shape_of(form.schema(form.parts))).is_valid(value)


def _called(message: AIMessage, form_name: str) -> str | None:
    if message.invalid_tool_calls:
        return message.invalid_tool_calls[0]["args"] or ""
    calls = [{"name": call["name"], "arguments": call["args"]} for call in message.tool_calls]
    if calls and calls[0]["name"] == form_name:
        return compact_json(calls[0]["arguments"])
    return compact_json({"tool_calls": calls}) if calls else None
