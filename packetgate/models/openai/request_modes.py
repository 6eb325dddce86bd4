"""The ways to ask an OpenAI-compatible server for an answer in a form."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from packetgate.models.calling import HeldBy
from packetgate.models.openai.refusals import TOP_LOGPROBS
from packetgate.models.openai.schemas import modest, shape_of, strict_schema
from packetgate.models.schemas import AnswerForm

Format = Literal["json_schema", "json_object+schema", "tool_call", "json_object", "prompt"]
FORMATS: tuple[Format, ...] = ("json_schema", "json_object+schema", "tool_call", "json_object", "prompt")
"""Strongest first. `json_object` with a schema is how llama-cpp-python's server is told of one. It stands before tool
calling because the answer then is text, whose tokens' probabilities can be had."""


@dataclass(frozen=True)
class RequestMode:
    """How one request asks a server to hold the answer to its form."""

    format: Format = "json_schema"
    strict: bool = False

    @property
    def held_by(self) -> HeldBy:
        """What holds the answer to its form."""
        return "json_object" if self.format == "json_object+schema" else self.format

    @property
    def shows_schema(self) -> bool:
        """Whether the request contains the schema of the text."""
        return self.format in {"json_schema", "json_object+schema"}

    def open_parts(self, form: AnswerForm, *, is_openai: bool) -> tuple[str, ...]:
        """Return the parts that any object fits: OpenAI bills the schema, so it gets only what it enforces."""
        return tuple(form.parts) if is_openai and not self.strict else ()

    def options(
        self, form: AnswerForm, sampling: Mapping[str, Any], *, is_openai: bool, measured: bool = True
    ) -> dict[str, Any]:
        """Return the request's options for langchain-openai.

        Args:
            measured: ask for token probabilities if the form has choices.
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
        schema: dict[str, Any] = modest(form.schema(self.open_parts(form, is_openai=is_openai)))
        return shape_of(schema) if is_openai else schema


def modes_for(form: AnswerForm, *, is_openai: bool) -> tuple[RequestMode, ...]:
    """Return the ways to ask for a form, strongest first. OpenAI takes no alternatives at the root of a schema."""
    if is_openai and "anyOf" in form.body:
        return RequestMode("json_object"), RequestMode("prompt")
    strict = RequestMode("json_schema", strict=True)
    takes_strict = strict_schema(strict.schema(form, is_openai=is_openai)) is not None
    return (*([strict] if takes_strict else []), *map(RequestMode, FORMATS))
