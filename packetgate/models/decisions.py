"""Decision models as stages ask them: typed questions about a state in, probabilities out, and no text."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from langchain_core.decisions import BaseDecisionModel, ClassifierResponse, Question, State
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, convert_to_openai_messages
from pydantic import JsonValue

from packetgate.models.requests import exchange
from packetgate.models.transport import named_errors
from packetgate.models.turns import attempt
from packetgate.state.base import TokenUsage, storable
from packetgate.state.errors import RequestError

_MEDIA = {"image", "image_url", "input_image", "audio", "input_audio", "video", "file"}
_HELD = {"url", "base64", "data", "file_id", "id", "image_url", "input_audio", "file"}
"""Keys of a media block that hold its content, or say where that is."""


async def decide(
    model: BaseDecisionModel, about: str, questions: Mapping[str, Question]
) -> tuple[ClassifierResponse, TokenUsage]:
    """Ask a decision model, and return its answers as they were checked, and what they took.

    Raises:
        DecisionError: it cannot be asked, raises an error of its own, or its answer cannot be read.
    """
    sent = [HumanMessage(about), *(HumanMessage(words_in(one.instructions)) for one in questions.values())]
    with exchange(model, sent, {}) as answered, attempt(model) as limit:
        with named_errors(model, limit.way_out, "decision"):
            async with asyncio.timeout_at(limit.deadline):
                given = await model.ainvoke({"state": about, "questions": dict(questions)})
            found = ClassifierResponse.model_validate(given.model_dump(warnings=False))
        answered(AIMessage(found.model_dump_json(include={"answers"})))
    took: Any = found.usage or {}
    return found, TokenUsage(**{name: max(0, took.get(name, 0)) for name in ("input_tokens", "output_tokens")})


def words_in(state: State | JsonValue) -> str:
    """Return a state in words: a text as it is, anything else as JSON, in it messages by role and content.

    Raises:
        RequestError: there is a picture or the like in it, or what JSON does not have.
    """
    if isinstance(state, str):
        return storable(state)
    try:
        text = json.dumps(state, ensure_ascii=False, default=_as_json)
        json.loads(text, object_hook=_without_media)
    except (TypeError, ValueError, RecursionError) as error:
        raise RequestError(f"the state of a decision is text, JSON and messages: {error}") from error
    return storable(text)


def _as_json(value: object) -> Any:
    if isinstance(value, BaseMessage):
        return convert_to_openai_messages(value)
    raise TypeError(f"{type(value).__name__} is none of these")


def _without_media(part: dict[str, Any]) -> None:
    if part.get("type") in _MEDIA and part.keys() & _HELD:
        raise RequestError(f"{part['type']}: pictures, sounds and files are not read here, only text")
