"""Answers of the prime model alone, without tools or session, to a chat client's own prompts.

Only the prompts of known clients are recognised, by their first words. Any other prompt is a user's message.
"""

from collections.abc import Awaitable, Callable, Sequence

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from packetgate.connectors.serve.protocol import AnswerRequest, ApiError, WireMessage
from packetgate.models.answers import complete
from packetgate.models.links import with_inert_links
from packetgate.models.model import Model
from packetgate.models.stripping import strip_markup
from packetgate.state.base import TokenUsage
from packetgate.state.errors import PacketgateError

TASK_PROMPTS = (
    "### Task:\nGenerate ",  # Open WebUI: titles, tags
    "### Task:\nSuggest ",  # Open WebUI: follow-up questions
    "### Task:\nAnalyze ",  # Open WebUI: search queries
    "### Task:\nYou are an autocompletion system",  # Open WebUI
    "Provide a concise, 5-word-or-less title",  # LibreChat
    "Generate a title for this conversation",  # opencode
)
MAX_OUTPUT_TOKENS = 500
TEMPERATURE = 0.3

_MESSAGES = {"user": HumanMessage, "assistant": AIMessage, "system": SystemMessage, "developer": SystemMessage}


def is_background_prompt(request: AnswerRequest) -> bool:
    """Whether a request is a client's own prompt: it offers no tools, and its first message is a task prompt."""
    messages = [message for message in request.wire_messages if message.role not in {"system", "developer"}]
    is_new = bool(messages) and all(message.role == "user" for message in messages)
    return is_new and not request.tools and messages[0].words.lstrip().startswith(TASK_PROMPTS)


async def answer_background(
    messages: Sequence[WireMessage], model_source: Callable[[], Awaitable[Model | None]]
) -> tuple[str, TokenUsage]:
    """Return the model's answer and its token usage. Raise ApiError without a model, or if the model fails."""
    prompt: list[BaseMessage] = [
        _MESSAGES[message.role](message.words) for message in messages if message.role in _MESSAGES and message.words
    ]
    try:
        model = await model_source()
        if model is None:
            raise ApiError("no model answers a client's own prompts: start `packetgate serve` with --prime", status=404)
        answer = await complete(model, prompt, user_words="", temperature=TEMPERATURE, max_tokens=MAX_OUTPUT_TOKENS)
    except PacketgateError as error:
        raise ApiError(" ".join(str(error).split()), status=502, code=error.code) from error
    return with_inert_links(strip_markup(answer.text).text, "").strip(), answer.usage
