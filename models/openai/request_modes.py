"""With what an OpenAI-compatible server is asked for an answer in a form, and what is left when it refuses."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from models.forms import AnswerForm
from models.model import HeldBy
from models.openai.schemas import grouped, modest, one_object, strict_schema
from models.transport import is_too_long, said

FORMATS = ("json_schema", "json_object+schema", "tool_call", "json_object", "prompt")
"""Strongest first. `json_object` with a schema is how llama.cpp's servers, and some hosts, are told of one. It stands
before tool calling because the answer then is text, whose tokens' probabilities can be had."""

TOP_LOGPROBS, FEW_LOGPROBS = 20, 5
"""How many alternatives to a token are asked for; some servers give only a few."""

_BAD_REQUEST = (400, 415, 422)
"""With these, any feature may be meant. With others only one that is named: they usually say something else."""
_CREDENTIALS_OR_LOAD = (401, 402, 408, 409, 429)
_OF_THE_FORMAT = ("response_format", "json_schema", "json_object", "schema", "grammar", "tool")
_OWN = ("reasoning_effort", "chat_template_kwargs", "enable_thinking")
"""What the user asked for themselves: where that is refused, nothing else is to blame."""


@dataclass(frozen=True)
class RequestMode:
    """The means of one request."""

    level: int = 0
    """Index in `FORMATS`."""
    top_logprobs: int = TOP_LOGPROBS
    """0: none."""
    left_out: frozenset[str] = frozenset()
    """Sampling parameters that are not sent: reasoning models refuse to have their sampling changed."""
    widened: bool = False
    """Whether the form's parts, which come from elsewhere, are open to any object, and its alternatives are one."""

    @property
    def held_by(self) -> HeldBy:
        """What keeps the answer in its form."""
        held_by: tuple[HeldBy, ...] = ("json_schema", "json_object", "tool_call", "json_object", "prompt")
        return held_by[self.level]

    @property
    def shows_schema(self) -> bool:
        """Whether the server is told what keeps the answer's text in its form."""
        return FORMATS[self.level] in {"json_schema", "json_object+schema"}

    def open_parts(self, form: AnswerForm, *, is_openai: bool) -> tuple[str, ...]:
        """Return the form's parts that are left to validation. OpenAI puts the schema into the prompt, and bills it."""
        spared = form.untold if is_openai else frozenset[str]()
        return tuple(part for part in form.parts if self.widened or part in spared)

    def weakest(self, other: "RequestMode") -> "RequestMode":
        """Return what both allow, whatever a form needs widened."""
        return RequestMode(
            max(self.level, other.level),
            min(self.top_logprobs, other.top_logprobs),
            self.left_out | other.left_out,
        )

    def lower(self) -> "RequestMode":
        """Return the next level, or the same where there is none."""
        return replace(self, level=min(self.level + 1, len(FORMATS) - 1))

    def options(self, form: AnswerForm, sampling: Mapping[str, Any], *, is_openai: bool) -> dict[str, Any]:
        """Return the request's options, as langchain-openai takes them."""
        options = {name: value for name, value in sampling.items() if name not in self.left_out}
        schema = modest(form.schema(self.open_parts(form, is_openai=is_openai)))
        if is_openai or self.widened:
            schema = grouped(one_object(schema))
        strict = strict_schema(schema) if is_openai else None
        named = {"name": form.name, "strict": strict is not None}
        # langchain-openai reads a `response_format` itself, and then fails on every answer that was cut off.
        body: dict[str, Any] = {}
        match FORMATS[self.level]:
            case "json_schema":
                body["response_format"] = {"type": "json_schema", "json_schema": {**named, "schema": strict or schema}}
            case "json_object+schema":
                body["response_format"] = {"type": "json_object", "schema": schema}
            case "tool_call":
                options["tools"] = [{"type": "function", "function": {**named, "parameters": strict or schema}}]
                options["tool_choice"] = {"type": "function", "function": {"name": form.name}}
            case "json_object":
                body["response_format"] = {"type": "json_object"}
        if form.choices and self.top_logprobs and FORMATS[self.level] != "tool_call":
            body |= {"logprobs": True, "top_logprobs": self.top_logprobs}
        return {**options, "extra_body": body} if body else options

    def after(self, error: BaseException | None, form: AnswerForm, sent: Mapping[str, Any]) -> "RequestMode | None":
        """Return the next weaker means after the server's refusal; None: nothing asked for is to blame for it."""
        status = getattr(error, "status_code", None)
        text = f"{said(error)} {getattr(error, 'code', None)}".lower() if error else ""
        if status is None or status in _CREDENTIALS_OR_LOAD or is_too_long(error) or any(own in text for own in _OWN):
            return None
        param = str(getattr(error, "param", None) or "").lower()
        with_logprobs = "logprobs" in sent.get("extra_body", {})
        for where in (param, text):
            if with_logprobs and "logprobs" in where:
                some = self.top_logprobs > FEW_LOGPROBS and "top_logprobs" in where
                return replace(self, top_logprobs=FEW_LOGPROBS if some else 0)
            for name in ("temperature", "top_p"):
                if name in sent and name in where:
                    return replace(self, left_out=self.left_out | {name})
            if any(words in where for words in _OF_THE_FORMAT):
                return self._looser(form)
        if status not in _BAD_REQUEST:
            return None
        return replace(self, top_logprobs=0) if with_logprobs else self._looser(form)

    def _looser(self, form: AnswerForm) -> "RequestMode | None":
        may_widen = form.parts or "anyOf" in form.body
        if may_widen and not self.widened and FORMATS[self.level] in {"json_schema", "json_object+schema", "tool_call"}:
            return replace(self, widened=True)
        return self.lower() if self.lower() != self else None
