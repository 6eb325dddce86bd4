"""Typed questions answered with a model's own probabilities: `/v1/decisions` in OpenAI's form, and `/v1/systemone`."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

from langchain_core import decisions as core
from langchain_core.decisions import ClassifierResponse
from pydantic import BeforeValidator, Field, StrictBool, StrictStr
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from packetgate.connectors.serve.app import Endpoint, body_of, unless_gone
from packetgate.connectors.serve.protocol import MODEL, ApiError, Wire, read_request
from packetgate.deciders.language.decisions import answered
from packetgate.models.decisions import words_in
from packetgate.models.model import Model
from packetgate.state.base import storable
from packetgate.state.errors import DecisionError
from packetgate.state.printing import compact_json

NO_MODEL = "no model here tells probabilities: start `packetgate serve` with one, such as --prime llamacpp:FILE.gguf"
MOST = 400
"""Questions of a request."""

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

    @property
    def meant(self) -> core.Question:
        """The question."""
        return core.Noul(instructions=words_of(self.instructions, "instructions"))

    def told(self, answer: Any) -> dict[str, Any]:
        """Return the answer as it is sent."""
        return {"probability": answer.noul}


class Choice(Wire):
    """Which of these?"""

    type: Literal["choice"]
    name: str | None = None
    instructions: Words = Field(min_length=1)
    choices: list[Option] = Field(min_length=1)

    @property
    def meant(self) -> core.Question:
        """The question; a value's name is its JSON, which tells `true` from `"true"`.

        Raises:
            ApiError: a value is there twice.
        """
        named = {compact_json(one.value): one.description or None for one in self.choices}
        if len(named) < len(self.choices):
            raise ApiError("choices: each must be another value", param="choices")
        return core.Choice(instructions=words_of(self.instructions, "instructions"), criteria={**named})

    def told(self, answer: Any) -> dict[str, Any]:
        """Return the answer as it is sent."""
        values = {compact_json(one.value): one.value for one in self.choices}
        listed = [{"value": values[name], "probability": p} for name, p in answer.probabilities.items()]
        return {"choice": values[answer.choice], "probabilities": listed, "confidence": answer.confidence}


class Score(Wire):
    """How much?"""

    type: Literal["score"]
    name: str | None = None
    instructions: Words = Field(min_length=1)
    levels: list[Level] = Field(min_length=2)

    @property
    def meant(self) -> core.Question:
        """The question."""
        levels = [f"{one.label} ({one.description})" if one.description else one.label for one in self.levels]
        return core.Score(instructions=words_of(self.instructions, "instructions"), criteria=[*levels])

    def told(self, answer: Any) -> dict[str, Any]:
        """Return the answer as it is sent."""
        told = enumerate(zip(self.levels, answer.probabilities.values(), strict=True))
        listed = [{"value": at, "label": one.label, "probability": p} for at, (one, p) in told]
        return {"score": answer.score, "probabilities": listed, "confidence": answer.confidence}


class DecisionRequest(Wire):
    """A request in OpenAI's form: questions in a list, each with a name or none."""

    model: str
    input: Words
    questions: list[Annotated[Predicate | Choice | Score, Field(discriminator="type")]] = Field(
        min_length=1, max_length=MOST
    )

    @property
    def about(self) -> str:
        """What the questions are about."""
        return words_of(self.input, "input")

    @property
    def meant(self) -> dict[str, core.Question]:
        """The questions, by their places."""
        return {str(at): question.meant for at, question in enumerate(self.questions)}

    def told(self, found: ClassifierResponse) -> dict[str, Any]:
        """Return the answers as they are sent."""
        answers = zip(self.questions, found.answers.values(), strict=True)
        usage: Mapping[str, Any] = found.usage or {}
        cached = usage["input_token_details"]["cache_read"]
        return {
            "answers": [{"name": one.name, "type": one.type, **one.told(answer)} for one, answer in answers],
            "model": found.model,
            "usage": {
                "input_tokens": usage["input_tokens"],
                "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
                "output_tokens": usage["output_tokens"],
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": usage["total_tokens"],
            },
        }


def _instructed(question: Any) -> Any:
    """Return a question of System One, which may leave its instructions to its criteria."""
    return question | {"instructions": question.get("instructions") or ""} if isinstance(question, dict) else question


class SystemOneRequest(Wire):
    """A request in System One's form: LangChain's own questions and answers, by name."""

    model: str
    state: str | dict[str, Any] | list[Any]
    questions: dict[str, Annotated[core.Question, BeforeValidator(_instructed)]] = Field(min_length=1, max_length=MOST)
    images: Any = None
    assets: Any = None

    @property
    def about(self) -> str:
        """What the questions are about.

        Raises:
            ApiError: there are pictures.
        """
        if self.images or self.assets:
            raise ApiError("images: pictures are not read here", param="images", code="unsupported_content")
        return words_in(self.state)

    @property
    def meant(self) -> dict[str, core.Question]:
        """The questions."""
        return self.questions

    def told(self, found: ClassifierResponse) -> dict[str, Any]:
        """Return the answers as they are sent."""
        return found.model_dump(mode="json", exclude={"request_id"})


class Decisions:
    """What the routes do."""

    def __init__(self, endpoint: Endpoint, model: Callable[[], Awaitable[Model | None]]) -> None:
        self._endpoint = endpoint
        self._model = model

    async def decide(self, request: Request) -> Response:
        """Answer every question, in their order."""
        return await self._answer(request, DecisionRequest)

    async def system_one(self, request: Request) -> Response:
        """Answer every question, by name."""
        return await self._answer(request, SystemOneRequest)

    async def _answer(self, request: Request, kind: type[DecisionRequest] | type[SystemOneRequest]) -> Response:
        self._endpoint.client(request)
        asked: DecisionRequest | SystemOneRequest = read_request(kind, await body_of(request))
        model = await self._model()
        if model is None or asked.model not in {MODEL, model.name}:
            what = NO_MODEL if model is None else f"there is no model {asked.model!r}: the one here is {MODEL!r}"
            raise ApiError(what, status=404, param="model", code="model_not_found")
        return await unless_gone(request, _answered(model, asked))


async def _answered(model: Model, asked: DecisionRequest | SystemOneRequest) -> Response:
    try:
        return JSONResponse(asked.told(await answered(model, asked.about, asked.meant)))
    except DecisionError as error:
        raise ApiError(" ".join(str(error).split()), status=502) from error


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
