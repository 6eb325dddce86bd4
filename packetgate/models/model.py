"""A chat model as the deciders use it: asked for an answer in a form, for calls, or for words.

All methods that ask raise `DecisionError` if the model cannot be asked.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Protocol

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableBinding, RunnableConfig

from packetgate.models.calling import CallAnswer, OfferedTool, WordProbabilities, WrittenCall
from packetgate.models.choices import MeasuredChoice
from packetgate.models.decoding import calls_in
from packetgate.models.options import ModelOptions
from packetgate.models.requests import record_request, usage_of
from packetgate.models.schemas import AnswerForm
from packetgate.models.thoughts import Thoughts
from packetgate.models.transport import as_decision_errors, check_answered, model_label, timeout_of
from packetgate.models.turns import limited_request
from packetgate.state.base import TokenUsage
from packetgate.state.errors import ToolsRefusedError

HIDDEN: RunnableConfig = {"tags": ["nostream"]}
"""Keeps LangGraph's message stream from showing JSON to the user."""

_SPEED_PROMPT = f"Numbers: {list(range(100, 160))}.\nWrite the first thirty of them in words."
PICTURES_REFUSED = "pictures_refused"
"""Key of an answer's `response_metadata`: why the server refused pictures and got their descriptions instead."""


@dataclass(frozen=True)
class FormAnswer:
    """An answer in a form, not validated yet."""

    text: str
    usage: TokenUsage
    cut_off: bool = False
    choices: tuple[MeasuredChoice, ...] = ()


class ChatCaller(Protocol):
    """A function that sends one request to a chat model."""

    async def __call__(
        self, chat: BaseChatModel, messages: Sequence[BaseMessage], options: dict[str, Any], *, patient: bool = False
    ) -> AIMessage:
        """Send the request; see `ask_chat`."""


class Model:
    """Any chat model; only its prompt describes the required form."""

    is_local = False
    """Whether it runs in this process: its token probabilities are known, and its thoughts have their own budget."""

    provider: str | None = None
    """The provider's name in OpenTelemetry's conventions; None: not known."""

    token_counter: Callable[[str], int] | None = None
    """Counts tokens with the model's own tokenizer, in any thread."""

    def __init__(self, chat: BaseChatModel, options: ModelOptions | None = None) -> None:
        self.chat = chat
        self.options = options or ModelOptions()
        self.thoughts = Thoughts(self.options.thinking_budget)
        self.returns_calls = False
        """Whether the server has returned calls separately from the text."""

    @property
    def label(self) -> str:
        """Name and endpoint, without secrets."""
        return model_label(self.chat)

    @property
    def calls_tools(self) -> bool:
        """Whether to offer tools by native tool calling; otherwise selections are requested as JSON."""
        return self.options.native_tools is not False and type(self.chat).bind_tools is not BaseChatModel.bind_tools

    @property
    def name(self) -> str:
        """The model name that requests use."""
        return str(getattr(self.chat, "model_name", None) or type(self.chat).__name__)

    @property
    def reading_speed(self) -> float | None:
        """Prompt tokens per second of a model in this process; None: not known."""
        return None

    async def fits(self, messages: Sequence[BaseMessage], max_tokens: int, tools: Sequence[OfferedTool] = ()) -> bool:
        """Whether messages, tools and an answer of this length fit the model's context, as far as known."""
        return True

    def sampling(self, **given: float | None) -> dict[str, Any]:
        """Return a stage's sampling options; the role's options override them."""
        return {name: value for name, value in given.items() if value is not None} | self.options.sampling

    @property
    def sees(self) -> bool | None:
        """Whether the model takes pictures; None: not known."""
        return self.options.vision

    def words_only(self, tools: Sequence[OfferedTool]) -> dict[str, Any]:
        """Return the options for an answer in words, with these tools in the prompt."""
        return {}

    async def answer(
        self, messages: Sequence[BaseMessage], form: AnswerForm, *, sampling: dict[str, Any]
    ) -> FormAnswer:
        """Ask once for an answer in this form.

        Args:
            sampling: `temperature`, `top_p` and `max_tokens`, if given.
        """
        message = await ask_chat(self.chat, messages, sampling)
        return FormAnswer(message.text, usage_of(message), cut_off=was_cut_off(message))

    async def word_probabilities(self, messages: Sequence[BaseMessage], options: tuple[str, ...]) -> WordProbabilities:
        """Return the probability of each word as the beginning of the answer; they sum to 1."""
        raise NotImplementedError(f"{self.label} returns no token probabilities")

    async def call(
        self,
        messages: Sequence[BaseMessage],
        tools: Sequence[OfferedTool],
        *,
        most: int,
        sampling: dict[str, Any],
        must: bool = False,
        asking: ChatCaller | None = None,
    ) -> CallAnswer:
        """Ask once for calls of these tools, or for words, in the model's own language.

        Args:
            most: the most calls in one answer, if that can be enforced.
            must: require at least one call.
            asking: asks an endpoint in place of `ask_chat`, such as `streaming_asker`.

        Raises:
            ToolsRefusedError: the server refuses all tools, or these tools.
        """
        offered = [one.as_openai for one in tools]
        bound = self.chat.bind_tools(offered, tool_choice="any") if must else self.chat.bind_tools(offered)
        if not isinstance(bound, RunnableBinding):
            raise ToolsRefusedError(f"{self.label} does not support LangChain's `bind_tools`")
        return self.read_calls(await (asking or ask_chat)(self.chat, messages, {**bound.kwargs, **sampling}))

    def read_calls(self, answer: AIMessage) -> CallAnswer:
        """Return the answer of a model that was offered tools.

        Calls in the text are read too, until the server has returned calls separately from the text.
        """
        text = answer.text
        calls = [WrittenCall(one["name"], one["args"]) for one in answer.tool_calls]
        calls += [
            WrittenCall(one["name"] or "", {}, unread=one["args"] or "nothing") for one in answer.invalid_tool_calls
        ]
        self.returns_calls = self.returns_calls or bool(calls)
        if not self.returns_calls:
            written = text if text.strip() else answer.additional_kwargs.get("reasoning_content", "")
            calls = [*calls_in(written)]
        # a call that was cut off has no text: its written part shows that it is not a thought
        shown = text if text.strip() else "".join(one.unread for one in calls)
        return CallAnswer(tuple(calls), shown, usage_of(answer), was_cut_off(answer), message_id=answer.id)


async def ask_chat(
    chat: BaseChatModel, messages: Sequence[BaseMessage], options: dict[str, Any], *, patient: bool = False
) -> AIMessage:
    """Ask once with a time limit, hidden from LangGraph's message stream.

    Args:
        patient: wait twice as long. Only for models that take a `timeout`.
    """
    timeout = timeout_of(chat)
    longer: dict[str, Any] = {"timeout": 2 * timeout} if patient and timeout else {}
    with limited_request(chat, twice=patient) as limit, record_request(chat, messages, options) as record:
        with as_decision_errors(chat, limit.advice):
            async with asyncio.timeout_at(limit.deadline):
                answer: BaseMessage = await chat.ainvoke(list(messages), HIDDEN, stream=False, **options, **longer)
            if not isinstance(answer, AIMessage):  # the endpoint chooses the role
                raise TypeError(f"a message of type {answer.type}")
        record(answer)
        check_answered(chat, answer)
        return answer


async def measured_speed(model: Model) -> str:
    """Load the model and return the tokens per second that it writes, in words."""
    options = model.sampling(temperature=0.0)
    await ask_chat(model.chat, [HumanMessage("Hello")], options | {"max_tokens": 1})
    begun = perf_counter()
    answer = await ask_chat(model.chat, [HumanMessage(_SPEED_PROMPT)], options | {"max_tokens": 48})
    speed = usage_of(answer).output_tokens / (perf_counter() - begun)
    return f"writes {speed:,.1f} tokens per second" if speed else "answers; its server reports no token counts"


def was_cut_off(answer: AIMessage) -> bool:
    """Whether the answer reached its length limit."""
    return answer.response_metadata.get("finish_reason") == "length"
