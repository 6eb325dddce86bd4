"""Ask decision models, which answer typed questions about a state with probabilities instead of text."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from langchain_core.decisions import BaseDecisionModel, ClassifierResponse, Question, State
from langchain_core.messages import BaseMessage, convert_to_openai_messages
from pydantic import JsonValue

from packetgate.models.transport import as_decision_errors, limited_request
from packetgate.state.base import TokenUsage, storable
from packetgate.state.errors import RequestError

_MEDIA = {"image", "image_url", "input_image", "audio", "input_audio", "video", "file"}
_CONTENT = {"url", "base64", "data", "file_id", "id", "image_url", "input_audio", "file"}
"""Keys of a media block that hold its content or the location of its content."""


async def ask_decision_model(
    model: BaseDecisionModel, state: str, questions: Mapping[str, Question]
) -> tuple[ClassifierResponse, TokenUsage]:
    """Return a decision model's validated answers and their token usage.

    Raise DecisionError if the model cannot be asked, raises an error, or returns an unreadable answer.
    """
    with limited_request(model) as deadline, as_decision_errors(model):
        async with asyncio.timeout_at(deadline):
            response = await model.ainvoke({"state": state, "questions": dict(questions)})
        answers = ClassifierResponse.model_validate(response.model_dump(warnings=False))
    usage: Any = answers.usage or {}
    return answers, TokenUsage(**{name: max(0, usage.get(name, 0)) for name in ("input_tokens", "output_tokens")})


def state_text(state: State | JsonValue) -> str:
    """Return a state as text: a text unchanged, anything else as JSON, with messages as role and content.

    Raise RequestError if the state contains an image, another file, or a value that JSON cannot represent.
    """
    if isinstance(state, str):
        return storable(state)
    try:
        text = json.dumps(state, ensure_ascii=False, default=_message_as_json)
        json.loads(text, object_hook=_refuse_media)
    except (TypeError, ValueError, RecursionError) as error:
        raise RequestError(f"the state of a decision must be text, JSON or messages: {error}") from error
    return storable(text)


def _message_as_json(value: object) -> Any:
    if isinstance(value, BaseMessage):
        return convert_to_openai_messages(value)
    raise TypeError(f"the state contains a {type(value).__name__}")


def _refuse_media(part: dict[str, Any]) -> None:
    if part.get("type") in _MEDIA and part.keys() & _CONTENT:
        raise RequestError(f"the state contains a part of type {part['type']!r}: decision models read only text")
