"""`/v1/decisions`: typed questions about an input, answered with a model's own probabilities and no word of text."""

import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool, StrictStr
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from packetgate.connectors.serve.app import Endpoint, body_of, unless_gone
from packetgate.connectors.serve.protocol import MODEL, ApiError, Wire, read_request
from packetgate.deciders.language.decisions import LABELS, Distribution, how_probable, which
from packetgate.models.model import Model
from packetgate.state.base import TokenUsage, storable
from packetgate.state.errors import DecisionError
from packetgate.state.printing import compact_json

NO_MODEL = "no model here tells probabilities: start `packetgate serve` with one, such as --prime llamacpp:FILE.gguf"

Part = dict[str, Any]
Words = str | list[Part]


class Option(Wire):
    """A value to choose."""

    value: StrictBool | StrictStr
    description: str | None = None


class Level(Wire):
    """A level to rate at."""

    label: str = Field(min_length=1)
    description: str | None = None


class Predicate(Wire):
    """Is it true?"""

    type: Literal["predicate"]
    name: str | None = None
    instructions: Words = Field(min_length=1)


class Choice(Wire):
    """Which of these?"""

    type: Literal["choice"]
    name: str | None = None
    instructions: Words = Field(min_length=1)
    choices: list[Option] = Field(min_length=1, max_length=len(LABELS))


class Score(Wire):
    """How much?"""

    type: Literal["score"]
    name: str | None = None
    instructions: Words = Field(min_length=1)
    levels: list[Level] = Field(min_length=2, max_length=len(LABELS))


Question = Annotated[Predicate | Choice | Score, Field(discriminator="type")]


class DecisionRequest(Wire):
    """A request for decisions."""

    model: str
    input: str | list[Part]
    questions: list[Question] = Field(min_length=1, max_length=400)


class Decisions:
    """What the route does."""

    def __init__(self, endpoint: Endpoint, model: Callable[[], Awaitable[Model | None]]) -> None:
        self._endpoint = endpoint
        self._model = model

    async def decide(self, request: Request) -> Response:
        """Answer every question, in their order."""
        self._endpoint.client(request)
        asked = read_request(DecisionRequest, await body_of(request))
        model = await self._model()
        if model is None or asked.model not in {MODEL, model.name}:
            what = NO_MODEL if model is None else f"there is no model {asked.model!r}: the one here is {MODEL!r}"
            raise ApiError(what, status=404, param="model", code="model_not_found")
        return await unless_gone(request, _answered(model, asked))


async def _answered(model: Model, asked: DecisionRequest) -> Response:
    about = words_of(asked.input, "input")
    questions = [(question, _instructions(question)) for question in asked.questions]
    answers, spent = [], TokenUsage()
    try:
        for question, instructions in questions:
            answer, usage = await _answer(model, about, question, instructions)
            answers.append({"name": question.name, "type": question.type, **answer})
            spent += usage
    except DecisionError as error:
        raise ApiError(" ".join(str(error).split()), status=502) from error
    return JSONResponse({"answers": answers, "model": model.name, "usage": _usage(spent)})


def _instructions(question: Predicate | Choice | Score) -> str:
    """Return what a question asks.

    Raises:
        ApiError: it cannot be answered.
    """
    values = [(type(one.value), one.value) for one in question.choices] if isinstance(question, Choice) else []
    if len({*values}) < len(values):
        raise ApiError("choices: each must be another value", param="choices")
    return words_of(question.instructions, "instructions")


async def _answer(
    model: Model, about: str, question: Predicate | Choice | Score, instructions: str
) -> tuple[dict[str, Any], TokenUsage]:
    match question:
        case Predicate():
            found = await how_probable(model, about, instructions)
            return {"probability": found.of[0]}, found.usage
        case Choice(choices=options):
            lines = [_line(compact_json(one.value), one.description) for one in options]
            found = await which(model, about, instructions, lines)
            best = max(range(len(options)), key=found.of.__getitem__)
            listed = [{"value": one.value, "probability": p} for one, p in zip(options, found.of, strict=True)]
            told = {"choice": options[best].value, "probabilities": listed, "confidence": _confidence(found)}
            return told, found.usage
        case Score(levels=levels):
            lines = [_line(one.label, one.description) for one in levels]
            found = await which(model, about, f"{instructions}\nThe levels go from the lowest to the highest.", lines)
            listed = [
                {"value": at, "label": one.label, "probability": p}
                for at, (one, p) in enumerate(zip(levels, found.of, strict=True))
            ]
            score = sum(at * p for at, p in enumerate(found.of))
            return {"score": score, "probabilities": listed, "confidence": _confidence(found)}, found.usage


def words_of(said: str | Sequence[Part], where: str) -> str:
    """Return the text of an input: parts and messages one below the other, whatever else they are as JSON.

    Raises:
        ApiError: there is a picture in it.
    """
    if isinstance(said, str):
        return storable(said)
    lines = []
    for part in said:
        if part.get("type") == "input_image":
            raise ApiError(f"{where}: pictures are not read here", param=where, code="unsupported_content")
        if isinstance(part.get("content"), str | list):
            role = f"{part['role']}: " if part.get("role") not in {None, "user"} else ""
            lines.append(role + words_of(part["content"], where))
        elif isinstance(part.get("text"), str):
            lines.append(storable(part["text"]))
        else:
            lines.append(storable(compact_json(part)))
    return "\n".join(lines)


def _line(name: str, description: str | None) -> str:
    return f"{name} ({description})" if description else name


def _confidence(found: Distribution) -> float:
    """Return how much of the distribution stands in one place: 1 where all does, 0 where none is preferred."""
    if len(found.of) < 2:
        return 1.0
    entropy = -sum(p * math.log(p) for p in found.of if p > 0)
    return min(1.0, max(0.0, 1 - entropy / math.log(len(found.of))))


def _usage(usage: TokenUsage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
