"""Render chat messages into prompt tokens by the model's chat template."""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from uuid import uuid4

from jinja2 import TemplateError

from packetgate.models.call_syntax import DEFAULT_SYNTAX, CallSyntax, syntax_from_template
from packetgate.models.decoding import THOUGHTS, Frame
from packetgate.models.llama.weights import LlamaWeights
from packetgate.models.plain_tools import as_plain_messages
from packetgate.state.errors import DecisionError

with suppress(ImportError):  # `check_installed` reports a missing package
    from llama_cpp.llama_chat_format import Jinja2ChatFormatter

Chat = Sequence[dict[str, Any]]
"""Messages with `role` and `content`; those of the assistant may have `tool_calls` with arguments as objects."""
ToolDefinitions = Sequence[dict[str, Any]]
"""Tools in the format of OpenAI's API."""

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

_ANY_TOOL = {"type": "function", "function": {"name": "any", "description": "", "parameters": {"type": "object"}}}

_THINKING = ("think", "thought", "reason", "analysis")
"""Words of which a template contains at least one if the model thinks."""


@dataclass(frozen=True)
class Prompt:
    """The tokens before an answer."""

    tokens: list[int]
    thought: Frame | None
    """The marks of the thought that the prompt opens; None if it opens none."""


class PromptWriter:
    """Writes prompts for one model. Message text is never tokenized as a control token."""

    def __init__(self, weights: LlamaWeights) -> None:
        self._weights = weights

    @cached_property
    def may_think(self) -> bool:
        """Whether the template supports thoughts."""
        template = (self._weights.template or "").lower()
        return any(word in template for word in _THINKING)

    @cached_property
    def template_syntax(self) -> CallSyntax | None:
        """The template's call syntax; None if the template describes no tools or its calls are not JSON."""
        if not re.search(r"\btools\b", self._weights.template or ""):
            return None
        try:
            return syntax_from_template(
                lambda chat: self._render(chat, [_ANY_TOOL], thinking=False), self._weights.control_texts
            )
        except DecisionError:
            return None

    @property
    def syntax(self) -> CallSyntax:
        """The template's call syntax, or the default."""
        return self.template_syntax or DEFAULT_SYNTAX

    def write(self, chat: Chat, tools: ToolDefinitions = (), *, thinking: bool = True) -> Prompt:
        """Return the prompt up to where the answer begins.

        Args:
            tools: tools that the template describes.
            thinking: passed to the template; False requests an answer without thoughts.

        Raises:
            DecisionError: the template refuses the messages.
        """
        mark = f"{uuid4().hex}:"  # no template escapes these characters
        quoted: list[str] = []

        def quote(found: re.Match[str]) -> str:
            quoted.append(found[0])
            return f"{mark}{len(quoted) - 1};"

        if tools and not self.template_syntax:
            chat, tools = as_plain_messages(chat, tools), ()
        if (control := self._control) is not None:
            chat, tools = _map_strings([chat, tools], lambda text: control.sub(quote, text))
        prompt = self._render(chat, tools, thinking=thinking)
        thought = next((one for one in THOUGHTS if prompt.rstrip().endswith(one.begin)), None)
        tokens: list[int] = []
        for at, part in enumerate(re.split(f"{mark}(\\d+);", prompt)):
            if at % 2:  # quoted text of a message
                tokens += self._weights.tokenize(quoted[int(part)], special=False)
            else:
                tokens += self._weights.tokenize(part, special=True)
        return Prompt(tokens, thought)

    @cached_property
    def _control(self) -> re.Pattern[str] | None:
        texts = self._weights.control_texts
        return re.compile("|".join(map(re.escape, texts))) if texts else None

    @cached_property
    def _formatter(self) -> "Jinja2ChatFormatter":
        begin, end = self._weights.edges
        return Jinja2ChatFormatter(self._weights.template or CHATML, eos_token=end, bos_token=begin)

    def _render(self, chat: Chat, tools: ToolDefinitions, *, thinking: bool) -> str:
        for turns in (chat, _alternating(chat)):  # many templates accept no system message, or only alternating roles
            try:
                return self._formatter(
                    messages=list(turns),  # type: ignore[arg-type]
                    tools=list(tools) or None,  # type: ignore[arg-type]
                    enable_thinking=thinking,
                ).prompt
            except (TemplateError, ValueError, TypeError, ArithmeticError, LookupError, RecursionError) as error:
                refusal = error
        raise DecisionError(f"the chat template of {self._weights.name} refuses these messages: {refusal}") from refusal


def _alternating(chat: Chat) -> Chat:
    turns: list[dict[str, str]] = []
    for message in chat:
        role = "assistant" if message["role"] == "assistant" and turns else "user"
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += f"\n\n{message['content']}"
        else:
            turns.append({"role": role, "content": message["content"]})
    return turns


def _map_strings(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key): _map_strings(one, change) for key, one in value.items()}
    return [_map_strings(one, change) for one in value] if isinstance(value, list | tuple) else value
