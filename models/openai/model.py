"""Answers in a form from OpenAI-compatible servers: asked for with the strongest means that the server accepts."""

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from jsonschema_rs import validator_for
from langchain_core.messages import AIMessage, BaseMessage

from models.forms import AnswerForm
from models.model import FormAnswer, Model, ask, was_cut_off
from models.openai.connect import CompatibleChat
from models.openai.logprobs import measure, whole_object
from models.openai.refusals import refuses_form
from models.openai.request_modes import RequestMode
from models.openai.schemas import shape_of
from models.options import ModelOptions
from models.requests import usage_of
from state.errors import DecisionError
from state.printing import compact_json

REMEMBERED_FORMS = 256


class OpenAICompatible(Model):
    """A model behind OpenAI's protocol. What its server refuses, or takes without doing it, is not asked for again."""

    chat: CompatibleChat

    def __init__(self, chat: CompatibleChat, options: ModelOptions | None = None, *, is_openai: bool = False) -> None:
        """Take a chat model, and whether its endpoint is OpenAI itself."""
        super().__init__(chat, options)
        self._is_openai = is_openai
        self._mode = RequestMode()
        self._too_much: set[tuple[str, ...]] = set()
        """The forms whose schemas were refused, while wider ones were accepted."""
        self._lock = threading.Lock()  # a model serves several event loops

    @property
    def provider(self) -> str | None:
        """OpenAI; None of others that speak its protocol."""
        return "openai" if self._is_openai else None

    async def answer(
        self, messages: Sequence[BaseMessage], form: AnswerForm, *, sampling: dict[str, Any]
    ) -> FormAnswer:
        """Ask for an answer in this form; ask again with weaker means when the server refuses them.

        Raises:
            DecisionError: the model cannot be asked, or refuses to answer.
        """
        first = mode = replace(self._mode, widened=_key(form) in self._too_much)
        refusal: DecisionError | None = None
        while True:
            options = mode.options(form, sampling, is_openai=self._is_openai)
            try:
                message = await ask(self.chat, messages, options)
            except DecisionError as error:
                weaker = mode.looser(form) if refuses_form(error.__cause__, self.chat.wishes) else None
                refusal = refusal or error
                if weaker is None:
                    told = refusal if _status(error) == _status(refusal) else error
                    raise told from told.__cause__
                mode = weaker
            else:
                break
        self._remember(first, mode, form)
        answer, ignored = await asyncio.to_thread(_read, message, mode, form, is_openai=self._is_openai)
        if ignored and not self._is_openai:  # OpenAI does keep schemas, but outside its strict mode only mostly
            self._remember(first, mode.lower(), form)
        return answer

    def _remember(self, first: RequestMode, worked: RequestMode, form: AnswerForm) -> None:
        with self._lock:
            self._mode = self._mode.weakest(worked)
            if worked.widened and not first.widened and worked.level == first.level:
                if len(self._too_much) >= REMEMBERED_FORMS:
                    self._too_much.clear()
                self._too_much.add(_key(form))


def _read(message: AIMessage, mode: RequestMode, form: AnswerForm, *, is_openai: bool) -> tuple[FormAnswer, bool]:
    """Return the answer, and whether the server passed over what it was told to hold it with."""
    called = _called(message, form.name)
    text = called if called is not None and (mode.held_by == "tool_call" or not message.text.strip()) else message.text
    cut_off = was_cut_off(message)
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
    """Whether the text is an object as the form has it, but for limits and parts: few servers keep to all of those."""
    value = whole_object(text)
    return value is not None and validator_for(shape_of(form.schema(form.parts))).is_valid(value)


def _called(message: AIMessage, form_name: str) -> str | None:
    """Return the arguments of the call that is the form, or else all calls, as JSON; None where there is no call."""
    if message.invalid_tool_calls:
        return message.invalid_tool_calls[0]["args"] or ""
    calls = [{"name": call["name"], "arguments": call["args"]} for call in message.tool_calls]
    if calls and calls[0]["name"] == form_name:
        return compact_json(calls[0]["arguments"])
    return compact_json({"tool_calls": calls}) if calls else None


def _key(form: AnswerForm) -> tuple[str, ...]:
    return form.name, *form.parts


def _status(error: DecisionError) -> int | None:
    return getattr(error.__cause__, "status_code", None)
