"""With what an OpenAI-compatible server is asked for an answer in a form, and what is left when it refuses."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from packetgate.models.calling import HeldBy
from packetgate.models.forms import AnswerForm
from packetgate.models.openai.refusals import TOP_LOGPROBS
from packetgate.models.openai.schemas import grouped, modest, one_object, shape_of, strict_schema

Format = Literal["json_schema", "json_object+schema", "tool_call", "json_object", "prompt"]
FORMATS: tuple[Format, ...] = ("json_schema", "json_object+schema", "tool_call", "json_object", "prompt")
"""Strongest first. `json_object` with a schema is how llama.cpp's servers, and some hosts, are told of one. It stands
before tool calling because the answer then is text, whose tokens' probabilities can be had."""


@dataclass(frozen=True)
class RequestMode:
    """The means of one request."""

    format: Format = "json_schema"
    strict: Literal["whole", "shape"] | None = None
    """Whether the server is to keep to the schema strictly: the whole of it, or without the limits of values."""
    widened: bool = False
    """Whether the form's parts, which come from elsewhere, are open to any object, and its alternatives are one."""

    @property
    def held_by(self) -> HeldBy:
        """What keeps the answer in its form."""
        return "json_object" if self.format == "json_object+schema" else self.format

    @property
    def shows_schema(self) -> bool:
        """Whether the server is told what keeps the answer's text in its form."""
        return self.format in {"json_schema", "json_object+schema"}

    def tells_all(self, *, is_openai: bool) -> bool:
        """Whether the schema says what the prompt says too.

        OpenAI puts the schema into the prompt, and bills it: what it is not held to, it is spared.
        """
        return bool(self.strict) or not is_openai

    def open_parts(self, form: AnswerForm, *, is_openai: bool) -> tuple[str, ...]:
        """Return the form's parts that are left to validation, and that the prompt describes where they are used."""
        spared = (form.untold if self.strict else form.parts.keys()) if is_openai else frozenset[str]()
        return tuple(part for part in form.parts if self.widened or part in spared)

    def options(
        self, form: AnswerForm, sampling: Mapping[str, Any], *, is_openai: bool, measured: bool = True
    ) -> dict[str, Any]:
        """Return the request's options, as langchain-openai takes them.

        Args:
            measured: ask for the probabilities of the tokens too, where the form has choices.
        """
        options, schema = dict(sampling), self.schema(form, is_openai=is_openai)
        named = {"name": form.name, **({"strict": True} if self.strict else {})}
        # langchain-openai reads a `response_format` itself, and then fails on every answer that was cut off.
        body: dict[str, Any] = {}
        match self.format:
            case "json_schema":
                body["response_format"] = {"type": "json_schema", "json_schema": {**named, "schema": schema}}
            case "json_object+schema":
                body["response_format"] = {"type": "json_object", "schema": schema}
            case "tool_call":
                options["tools"] = [{"type": "function", "function": {**named, "parameters": schema}}]
                options["tool_choice"] = {"type": "function", "function": {"name": form.name}}
            case "json_object":
                body["response_format"] = {"type": "json_object"}
        if form.choices and measured and self.format != "tool_call":
            body |= {"logprobs": True, "top_logprobs": TOP_LOGPROBS}
        return {**options, "extra_body": body} if body else options

    def schema(self, form: AnswerForm, *, is_openai: bool) -> dict[str, Any]:
        """Return the form's schema as it is sent."""
        parts = self.open_parts(form, is_openai=is_openai)
        schema: dict[str, Any] = modest(form.schema(parts, listed=self.tells_all(is_openai=is_openai)))
        if is_openai or self.widened:
            schema = grouped(one_object(schema))
        return shape_of(schema) if is_openai or self.strict == "shape" else schema


def modes_for(form: AnswerForm, *, is_openai: bool) -> tuple[RequestMode, ...]:
    """Return the means of asking for a form, strongest first.

    OpenAI takes no limits of values in its strict mode. Of others, some keep to limits, and some stand before OpenAI.
    """
    takes_strict = strict_schema(RequestMode(strict="whole").schema(form, is_openai=is_openai)) is not None
    strict: tuple[Literal["whole", "shape"], ...] = ("shape",) if is_openai else ("whole", "shape")
    modes = [RequestMode("json_schema", how) for how in strict if takes_strict]
    for one in FORMATS:
        modes.append(RequestMode(one))
        if (form.parts or "anyOf" in form.body) and one in {"json_schema", "json_object+schema", "tool_call"}:
            modes.append(RequestMode(one, widened=True))
    return tuple(modes)
