"""Answers of the prime model alone, without tools or session: a chat client's own prompts, and `/v1/systemone`.

Only the prompts of known clients are recognised, by their first words. Any other prompt is a user's message.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any

from langchain_core.decisions import Question
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from pydantic import BaseModel, BeforeValidator, Field

from packetgate.connectors.serve.protocol import SERVED_MODEL, AnswerRequest, ApiError, WireMessage, unknown_model
from packetgate.deciders.language.decisions import answer_by_probability
from packetgate.models.answers import complete
from packetgate.models.decision_models import state_text
from packetgate.models.links import with_inert_links
from packetgate.models.model import Model
from packetgate.models.stripping import strip_markup
from packetgate.state.base import TokenUsage
from packetgate.state.errors import DecisionError, PacketgateError

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
MAX_QUESTIONS = 400

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


def _with_instructions(question: Any) -> Any:
    """Return a question, with empty instructions if it has none. LangChain's type requires instructions."""
    return {"instructions": "", **question} if isinstance(question, dict) else question


class DecisionRequest(BaseModel):
    """A request in System One's form: a state, and named questions about the state."""

    model: str
    state: str | dict[str, Any] | list[Any]
    questions: dict[str, Annotated[Question, BeforeValidator(_with_instructions)]] = Field(
        min_length=1, max_length=MAX_QUESTIONS
    )
    images: Any = None
    assets: Any = None


async def answer_questions(request: DecisionRequest, model: Model | None) -> dict[str, Any]:
    """Return the answers by name, with probabilities and tokens. Raise ApiError if the model cannot answer."""
    if request.images or request.assets:
        raise ApiError(
            "pictures are not supported: leave out `images` and `assets`", param="images", code="unsupported_content"
        )
    if model is None:
        message = (
            "no model of this server returns probabilities: start `packetgate serve` with --prime llamacpp:FILE.gguf"
        )
        raise ApiError(message, status=404, param="model", code="model_not_found")
    if request.model not in {SERVED_MODEL, model.name}:
        raise unknown_model(request.model)
    try:
        response = await answer_by_probability(model, state_text(request.state), request.questions)
    except DecisionError as error:
        raise ApiError(" ".join(str(error).split()), status=502, code=error.code) from error
    return response.model_dump(mode="json", exclude={"request_id"})
