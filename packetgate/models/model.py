"""The interface to chat models: messages and tools in; calls and text out.

Every answer has its token usage and, if the model returns them, token probabilities. All functions that send
requests raise `DecisionError` if a request fails.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.configurable import DynamicRunnable

from packetgate.models.decoding import WrittenCall, calls_in
from packetgate.models.options import ModelOptions
from packetgate.models.plain_tools import with_tools_in_words
from packetgate.models.schemas import BOUNDS, Schema, without_keywords
from packetgate.models.stripping import strip_markup
from packetgate.models.thoughts import Thoughts, ask_with_token_limit, usage_of
from packetgate.models.token_probabilities import begun_word, call_probability, with_probabilities, word_probabilities
from packetgate.models.transport import (
    as_decision_errors,
    chat_models_in,
    check_not_refused,
    has_bound_tools,
    limited_request,
    model_label,
    timeout_of,
    with_each_chat,
)
from packetgate.state.base import TokenUsage
from packetgate.state.errors import InputError
from packetgate.tools.text.nearly_json import read_arguments

HIDDEN: RunnableConfig = {"tags": ["nostream"]}
"""Config that keeps an answer out of LangGraph's message stream: users do not see JSON."""

_SPEED_PROMPT = f"Numbers: {list(range(100, 160))}.\nWrite the first thirty of them in words."
_TOOL_TOKEN_LIMITS = ((250, 600), (1_000, 2_000))
"""For models in this process: (prompt tokens per second, largest number of tool tokens below this speed)."""
PICTURES_REFUSED = "pictures_refused"
"""Key of `response_metadata` for why the server refused images; it then received their descriptions."""


@dataclass(frozen=True)
class OfferedTool:
    """A tool that is offered to a model."""

    name: str
    description: str
    parameters: Schema
    """JSON Schema of an object."""
    prompt_schema: Schema | None = None
    """A shorter schema for the prompt, if `parameters` are enforced or validated otherwise; None: the same schema."""
    acts: bool = True
    """False for a tool that only asks or shows: with a grammar, a required call is of another tool."""

    @property
    def openai_format(self) -> dict[str, Any]:
        """The tool in the format of OpenAI's API, which chat templates also accept."""
        return self._with(self.parameters)

    @property
    def prompt_format(self) -> dict[str, Any]:
        """The tool without bounds of its arguments, for models whose arguments a grammar enforces."""
        return self._with(without_keywords(self.prompt_schema or self.parameters, BOUNDS))

    def _with(self, parameters: Schema) -> dict[str, Any]:
        function = {"name": self.name, "description": self.description, "parameters": parameters}
        return {"type": "function", "function": function}


@dataclass(frozen=True)
class ModelAnswer:
    """A model's answer before validation: text and tool calls."""

    text: str
    """The text as the model wrote it. It is empty if a model in this process made calls."""
    usage: TokenUsage
    cut_off: bool = False
    calls: tuple[WrittenCall, ...] = ()
    call_probability: float | None = None
    """Probability that the answer is a tool call and not text; None: not measured."""
    widened_tools: tuple[str, ...] = ()
    """Tools whose argument schema no grammar can enforce in full; validation checks their arguments."""
    message_id: str | None = None
    """The id of the streamed message."""
    problem: str = ""
    """Why the server refused images; empty if it did not."""


@dataclass(frozen=True)
class WordProbabilities:
    """Probabilities that an answer begins with each of several words."""

    by_word: Mapping[str, float]
    """They sum to 1; empty if they were not measured."""
    usage: TokenUsage
    said: str | None = None
    """The word that the answer begins with; None: another word."""


ChatCaller = Callable[..., Awaitable[AIMessage]]
"""A function that sends one request to a chat model; it has the parameters of `ask_chat`."""


class Model:
    """Any chat model."""

    is_local = False
    """Whether the model runs in this process: token probabilities are known, and thoughts have a separate budget."""

    runs_here = False
    """Whether the model runs on this machine, in any process: prompts take time and cost no money."""

    token_counter: Callable[[str], int] | None = None
    """Counts tokens with the model's own tokenizer, in any thread."""

    def __init__(self, chat: BaseChatModel | Runnable[Any, Any], options: ModelOptions | None = None) -> None:
        """Use a chat model, also one that LangChain's `with_fallbacks`, `with_retry`, `bind` or `with_config` wraps.

        Raises:
            InputError: `chat` is not a chat model, or already has bound tools.
        """
        self._chats = chat_models_in(chat)
        if not all(isinstance(one, BaseChatModel) or _is_configurable_model(one) for one in self._chats):
            raise InputError(f"{type(chat).__name__} is not a chat model: pass the model without the steps after it")
        if has_bound_tools(chat):
            raise InputError(f"{model_label(chat)} has its own tools bound: pass the model without bound tools")
        self.chat: Any = chat
        self.options = options or ModelOptions()
        self.thoughts = Thoughts(self.options.thinking_budget)
        self._refuses_tools = False
        self.returns_calls = False
        """Whether the server returned calls separately from the text before."""

    @property
    def label(self) -> str:
        """The model's name and endpoint, without secrets."""
        return model_label(self.chat)

    @property
    def uses_tool_calling(self) -> bool:
        """Whether to use tool calling; otherwise, words describe the tools, and calls are parsed from the text."""
        unable = BaseChatModel.bind_tools
        is_able = all(getattr(type(one), "bind_tools", None) is not unable for one in self._chats)
        return self.options.native_tools is not False and is_able and not self._refuses_tools

    @property
    def name(self) -> str:
        """The model name that requests use."""
        chat = self._chats[0]
        return str(getattr(chat, "model_name", None) or type(chat).__name__)

    @property
    def reading_speed(self) -> float | None:
        """Prompt tokens per second of a model in this process; None: not known."""
        return None

    @property
    def tool_token_limit(self) -> int | None:
        """Tokens of tools that a slow model in this process reads in time; None: no limit."""
        speed = self.reading_speed or 0.0
        limit = next((tokens for max_speed, tokens in _TOOL_TOKEN_LIMITS if speed < max_speed), None)
        return limit if self.is_local else None

    @property
    def context_size(self) -> int | None:
        """Tokens of prompt and answer together; None: not known."""
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
        if self.options.vision is not None:
            return self.options.vision
        known = {(getattr(one, "profile", None) or {}).get("image_inputs") for one in self._chats}
        return known.pop() if len(known) == 1 else None

    @property
    def measures_streamed_calls(self) -> bool:
        """Whether streamed answers have token probabilities, as far as is known."""
        return False

    def text_answer_options(self, tools: Sequence[OfferedTool]) -> dict[str, Any]:
        """Return request options for a text answer, with these tools in the prompt."""
        return {}

    async def word_probabilities(
        self, messages: Sequence[BaseMessage], words: tuple[str, ...], *, max_tokens: int = 16, temperature: float = 0.0
    ) -> WordProbabilities:
        """Return the probabilities that the answer begins with each word.

        Args:
            max_tokens: limit of the answer, after a thought.
        """

        async def ask(most: int) -> _WordAnswer:
            options = self.sampling(temperature=temperature) | self.probability_options | {"max_tokens": most}
            return _WordAnswer(await ask_chat(self.chat, messages, options))

        message = (await ask_with_token_limit(self.thoughts, max_tokens, ask)).message
        said = begun_word(strip_markup(message.text, "").text, words)
        return WordProbabilities(word_probabilities(message, words), usage_of(message), said)

    @property
    def probability_options(self) -> dict[str, Any]:
        """Request options for token probabilities, if the model may return them."""
        return {}

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
        """Ask once for calls of these tools or for text, by tool calling, or with the tools in the system message.

        Args:
            max_calls: limit of calls in one answer, where the server can enforce it.
            must_call: require at least one call.
            caller: sends the request instead of `ask_chat`, such as `streaming_caller(...)`.
        """
        if not self.uses_tool_calling:
            in_words = with_tools_in_words(messages, [one.prompt_format for one in tools], must_call=must_call)
            return self.read_calls(await (caller or ask_chat)(self.chat, in_words, sampling), tools)
        must: dict[str, Any] = {"tool_choice": "any"} if must_call else {}
        offered = [one.openai_format for one in tools]
        try:
            bound = with_each_chat(self.chat, lambda one: one.bind_tools(offered, **must))
        except NotImplementedError:
            self._refuses_tools = True
            return await self.call(
                messages, tools, max_calls=max_calls, sampling=sampling, must_call=must_call, caller=caller
            )
        return self.read_calls(await (caller or ask_chat)(bound, messages, sampling), tools)

    def read_calls(self, answer: AIMessage, tools: Sequence[OfferedTool]) -> ModelAnswer:
        """Return the calls and text of an answer.

        Calls in the text are also parsed. JSON that names a tool that is not offered may be an example: it is a call
        only between the marks of a call's syntax, or as the whole text. Once the server has returned calls separately
        from the text, the same applies to offered tools, and calls of other tools are not parsed from the text.
        Probabilities are read from `logprobs` in the form of OpenAI's API.
        """
        text = answer.text
        calls = [WrittenCall(one["name"], one["args"]) for one in answer.tool_calls]
        calls += [_read_call(one["name"] or "", one["args"] or "") for one in answer.invalid_tool_calls]
        self.returns_calls = self.returns_calls or bool(calls)
        if not calls:
            written = text if text.strip() else answer.additional_kwargs.get("reasoning_content", "")
            is_separate = self.returns_calls and self.uses_tool_calling
            calls = [*calls_in(written, if_clear=is_separate)]
            offered = {name for tool in tools for name in (tool.name, tool.name.replace("__", ".", 1))}
            if not {call.name for call in calls} <= offered and (is_separate or not calls_in(written, if_clear=True)):
                calls = []
        # a call that was cut off leaves no text: its partial arguments show that the answer is not a thought
        shown = text if text.strip() else "".join(one.invalid_arguments for one in calls)
        return ModelAnswer(
            shown,
            usage_of(answer),
            was_cut_off(answer),
            with_probabilities(calls, answer),
            call_probability(answer),
            message_id=answer.id,
        )


def _read_call(name: str, arguments: str) -> WrittenCall:
    """Return a call whose arguments LangChain could not parse."""
    try:
        return WrittenCall(name, read_arguments(arguments))
    except ValueError:
        return WrittenCall(name, {}, invalid_arguments=arguments)


class _WordAnswer(NamedTuple):
    message: AIMessage

    @property
    def usage(self) -> TokenUsage:
        return usage_of(self.message)


def _is_configurable_model(chat: Any) -> bool:
    """Whether a value is a model of `init_chat_model` that is chosen by the configuration of the run."""
    return not isinstance(chat, DynamicRunnable) and callable(getattr(chat, "bind_tools", None))


async def ask_chat(
    chat: Runnable[Any, Any], messages: Sequence[BaseMessage], options: dict[str, Any], *, double_timeout: bool = False
) -> AIMessage:
    """Ask once with a time limit, hidden from LangGraph's message stream.

    Args:
        double_timeout: double the time limit. Only for models with a `timeout` option.
    """
    timeout = timeout_of(chat)
    longer: dict[str, Any] = {"timeout": 2 * timeout} if double_timeout and timeout else {}
    with limited_request(chat, double_timeout=double_timeout) as deadline:
        with as_decision_errors(chat):
            async with asyncio.timeout_at(deadline):
                asked = with_each_chat(chat, lambda one: one.bind(stream=False, **options, **longer))
                answer: BaseMessage = await asked.ainvoke(list(messages), HIDDEN)
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
