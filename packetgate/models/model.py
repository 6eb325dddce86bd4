"""A chat model as the deciders use it: it returns JSON answers, tool calls or text.

All methods that send requests raise `DecisionError` if a request fails.
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
from packetgate.models.transport import as_decision_errors, check_not_refused, model_label, timeout_of
from packetgate.models.turns import limited_request
from packetgate.state.base import TokenUsage
from packetgate.state.errors import ToolsRefusedError

HIDDEN: RunnableConfig = {"tags": ["nostream"]}
"""Config that keeps an answer out of LangGraph's message stream: users do not see JSON."""

_SPEED_PROMPT = f"Numbers: {list(range(100, 160))}.\nWrite the first thirty of them in words."
PICTURES_REFUSED = "pictures_refused"
"""Key of `response_metadata` for why the server refused pictures; it then received their descriptions."""


@dataclass(frozen=True)
class FormAnswer:
    """A JSON answer, not validated yet."""

    text: str
    usage: TokenUsage
    cut_off: bool = False
    choices: tuple[MeasuredChoice, ...] = ()


class ChatCaller(Protocol):
    """A function that sends one request to a chat model."""

    async def __call__(
        self,
        chat: BaseChatModel,
        messages: Sequence[BaseMessage],
        options: dict[str, Any],
        *,
        double_timeout: bool = False,
    ) -> AIMessage:
        """Send the request; see `ask_chat`."""


class Model:
    """Any chat model. Nothing enforces the form of its JSON answers; only the prompt describes it."""

    is_local = False
    """Whether the model runs in this process: token probabilities are known, and thoughts have a separate budget."""

    provider: str | None = None
    """The provider's name in OpenTelemetry's conventions; None: not known."""

    token_counter: Callable[[str], int] | None = None
    """Counts tokens with the model's own tokenizer, in any thread."""

    def __init__(self, chat: BaseChatModel, options: ModelOptions | None = None) -> None:
        self.chat = chat
        self.options = options or ModelOptions()
        self.thoughts = Thoughts(self.options.thinking_budget)
        self.returns_calls = False
        """Whether the server returned calls separately from the text before."""

    @property
    def label(self) -> str:
        """The model's name and endpoint, without secrets."""
        return model_label(self.chat)

    @property
    def uses_tool_calling(self) -> bool:
        """Whether to use native tool calling; otherwise, calls are requested as JSON."""
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
        """Whether messages, tools and the answer fit the context; True if the context size is not known."""
        return True

    def sampling(self, **defaults: float | None) -> dict[str, Any]:
        """Return sampling options: the stage's defaults, overridden by the options of the role's model."""
        return {name: value for name, value in defaults.items() if value is not None} | self.options.sampling

    @property
    def accepts_images(self) -> bool | None:
        """Whether the model accepts images; None: not known."""
        return self.options.vision

    def text_answer_options(self, tools: Sequence[OfferedTool]) -> dict[str, Any]:
        """Return request options for a text answer, with these tools in the prompt."""
        return {}

    async def answer(
        self, messages: Sequence[BaseMessage], form: AnswerForm, *, sampling: dict[str, Any]
    ) -> FormAnswer:
        """Ask once for a JSON answer in this form.

        Args:
            sampling: may contain `temperature`, `top_p` and `max_tokens`.
        """
        message = await ask_chat(self.chat, messages, sampling)
        return FormAnswer(message.text, usage_of(message), cut_off=was_cut_off(message))

    async def word_probabilities(self, messages: Sequence[BaseMessage], words: tuple[str, ...]) -> WordProbabilities:
        """Return the probabilities that the answer begins with each word; they sum to 1."""
        raise NotImplementedError(f"{self.label} returns no token probabilities")

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
        """Ask once for calls of these tools or for text, by native tool calling.

        Args:
            max_calls: limit of calls in one answer, where the server can enforce it.
            must_call: require at least one call.
            caller: sends the request instead of `ask_chat`, such as `streaming_caller(...)`.

        Raises:
            ToolsRefusedError: the server refuses all tools, or these tools.
        """
        offered = [one.openai_format for one in tools]
        bound = self.chat.bind_tools(offered, tool_choice="any") if must_call else self.chat.bind_tools(offered)
        if not isinstance(bound, RunnableBinding):
            raise ToolsRefusedError(f"{self.label} does not support LangChain's `bind_tools`")
        return self.read_calls(await (caller or ask_chat)(self.chat, messages, {**bound.kwargs, **sampling}))

    def read_calls(self, answer: AIMessage) -> CallAnswer:
        """Return the calls and text of an answer.

        Calls in the text are also read, until the server first returns calls separately from the text.
        """
        text = answer.text
        calls = [WrittenCall(one["name"], one["args"]) for one in answer.tool_calls]
        calls += [
            WrittenCall(one["name"] or "", {}, invalid_arguments=one["args"] or "nothing")
            for one in answer.invalid_tool_calls
        ]
        self.returns_calls = self.returns_calls or bool(calls)
        if not self.returns_calls:
            written = text if text.strip() else answer.additional_kwargs.get("reasoning_content", "")
            calls = [*calls_in(written)]
        # a call that was cut off leaves no text: its partial arguments show that the answer is not a thought
        shown = text if text.strip() else "".join(one.invalid_arguments for one in calls)
        return CallAnswer(tuple(calls), shown, usage_of(answer), was_cut_off(answer), message_id=answer.id)


async def ask_chat(
    chat: BaseChatModel, messages: Sequence[BaseMessage], options: dict[str, Any], *, double_timeout: bool = False
) -> AIMessage:
    """Ask once with a time limit, hidden from LangGraph's message stream.

    Args:
        double_timeout: double the time limit. Only for models with a `timeout` option.
    """
    timeout = timeout_of(chat)
    longer: dict[str, Any] = {"timeout": 2 * timeout} if double_timeout and timeout else {}
    with (
        limited_request(chat, double_timeout=double_timeout) as limit,
        record_request(),
    ):
        with as_decision_errors(chat, limit.advice):
            async with asyncio.timeout_at(limit.deadline):
                answer: BaseMessage = await chat.ainvoke(list(messages), HIDDEN, stream=False, **options, **longer)
            if not isinstance(answer, AIMessage):
                raise TypeError(f"the endpoint returned a message of type {answer.type}")
        check_not_refused(chat, answer)
        return answer


async def describe_speed(model: Model) -> str:
    """Load the model, measure the tokens per second that it writes, and return a description."""
    options = model.sampling(temperature=0.0)
    await ask_chat(model.chat, [HumanMessage("Hello")], options | {"max_tokens": 1})
    begun = perf_counter()
    answer = await ask_chat(model.chat, [HumanMessage(_SPEED_PROMPT)], options | {"max_tokens": 48})
    speed = usage_of(answer).output_tokens / (perf_counter() - begun)
    return f"writes {speed:,.1f} tokens per second" if speed else "answers; the server reports no token counts"


def was_cut_off(answer: AIMessage) -> bool:
    """Whether the answer reached its length limit."""
    return answer.response_metadata.get("finish_reason") == "length"
