"""`/v1/systemone`: typed questions, answered with the probabilities of the prime model's own tokens."""

from typing import Annotated, Any

from langchain_core.decisions import Question
from pydantic import BaseModel, BeforeValidator, Field

from packetgate.connectors.serve.protocol import SERVED_MODEL, ApiError, unknown_model
from packetgate.deciders.language.decisions import answer_by_probability
from packetgate.models.decisions import state_text
from packetgate.models.model import Model
from packetgate.state.errors import DecisionError

MAX_QUESTIONS = 400


def _with_instructions(question: Any) -> Any:
    """Return a question with empty instructions if it has none: LangChain's type requires them, System One does not."""
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
        raise ApiError("images: pictures are not supported", param="images", code="unsupported_content")
    if model is None:
        message = (
            "no model here returns probabilities: start `packetgate serve` with one, such as --prime llamacpp:FILE.gguf"
        )
        raise ApiError(message, status=404, param="model", code="model_not_found")
    if request.model not in {SERVED_MODEL, model.name}:
        raise unknown_model(request.model)
    try:
        response = await answer_by_probability(model, state_text(request.state), request.questions)
    except DecisionError as error:
        raise ApiError(" ".join(str(error).split()), status=502, code=error.code) from error
    return response.model_dump(mode="json", exclude={"request_id"})
