"""Typed questions with a probability for an answer: put to a decision model, as a review, or answered by a model."""

import math
import string
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from langchain_core.decisions import (
    Answer,
    Choice,
    ChoiceAnswer,
    ClassifierResponse,
    Noul,
    NoulAnswer,
    NoulCriteria,
    Question,
    Score,
    ScoreAnswer,
)
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.messages.ai import InputTokenDetails, UsageMetadata
from pydantic import JsonValue

from packetgate.deciders.language.prompting import data
from packetgate.deciders.language.review import to_review
from packetgate.deciders.protocols import CallReview, Review
from packetgate.models import schemas
from packetgate.models.decisions import decide, words_in
from packetgate.models.model import Model
from packetgate.models.schemas import AnswerForm, obj
from packetgate.prompts.rendering import render
from packetgate.state.base import ConfidenceSource, TokenUsage
from packetgate.state.context import RoutingContext
from packetgate.state.errors import DecisionError, RequestError
from packetgate.state.packet import CognitionPacket
from packetgate.tools.catalogue.catalogue import Catalogue

if TYPE_CHECKING:
    from langchain_core.decisions import BaseDecisionModel

DecisionSource = Callable[[], Awaitable["BaseDecisionModel"]]

APPROVED = 0.5
"""The probability from which on a call counts as approved; how sure that is, the gate's threshold says."""
LABELS = string.ascii_uppercase + string.ascii_lowercase + string.digits
"""By which options are told apart: each begins differently, so that one token decides."""
MAX_TOKENS = 32
"""Of an answer."""


async def review_by_decisions(
    source: DecisionSource, packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext
) -> Review:
    """Ask a decision model about each call of a pass. A call that it does not answer about is not judged: 0.0.

    Raises:
        DecisionError: it cannot be asked, or answers about none.
    """
    model, numbered = await source(), {f"call_{at}": call for at, call in enumerate(packet.routing.calls, start=1)}
    asked = {name: Noul(instructions=render("decision_review", number=name.removeprefix("call_"))) for name in numbered}
    found, usage = await decide(model, to_review(packet, catalogue), asked)
    judged = {name: one.noul for name, one in found.nouls.items() if name in numbered}
    if not judged:
        raise DecisionError(f"{model.model} answered none of the questions, or with no probability", usage)
    reviews = tuple(
        CallReview(
            call_id=numbered[name].call_id,
            approved=probability >= APPROVED,
            confidence=max(probability, 1 - probability),
            confidence_source=ConfidenceSource.ENDPOINT,
            reasoning=f"{model.model}: {probability:.2f} that it should run",
        )
        for name, probability in judged.items()
    )
    return Review(reviews=reviews, confidence_source=ConfidenceSource.ENDPOINT, decided_by="model", usage=usage)


async def answered(model: Model, about: str, questions: Mapping[str, Question]) -> ClassifierResponse:
    """Answer questions by the probabilities of a model's tokens, each by itself; what they share is evaluated once.

    Raises:
        RequestError: a question cannot be put, which is found before any is; or it is too long for the model.
        DecisionError: the model cannot be asked, or tells no probabilities.
    """
    put = {name: _put(question) for name, question in questions.items()}
    answers: dict[str, Answer] = {}
    spent = TokenUsage()
    for name, question in questions.items():
        of, took = await _distribution(model, about, *put[name])
        answers[name], spent = _read(question, of), spent + took
    usage = UsageMetadata(
        input_tokens=spent.input_tokens,
        output_tokens=spent.output_tokens,
        total_tokens=spent.input_tokens + spent.output_tokens,
        input_token_details=InputTokenDetails(cache_read=spent.cached_tokens),
    )
    return ClassifierResponse(model=model.name, answers=answers, usage=usage)


def _put(question: Question) -> tuple[str, Sequence[bool | str]]:
    """Return a question in words, and the values of which one answers it."""
    words = words_in(question.instructions)
    match question:
        case Noul(criteria=criteria):
            meant = criteria or NoulCriteria()
            lines = [
                _line(value, what) for value, what in (("true", meant.true), ("false", meant.false)) if what is not None
            ]
            return "\n".join(filter(None, [words, *lines, "Answer true or false."])), [True, False]
        case Choice(criteria=named):
            options = [_line(name, what) for name, what in named.items()]
        case Score(criteria=levels):
            words = f"{words}\nThe levels go from the lowest to the highest.".lstrip()
            options = [words_in(level) for level in levels]
        case _:
            raise RequestError(f"{question.type}: no such question is answered here: ask a noul, a choice or a score")
    if len(options) > len(LABELS):
        raise RequestError(f"{question.type}: {len(options)} options are too many: give at most {len(LABELS)}")
    listed = [f"{label}: {' '.join(option.split())}" for label, option in zip(LABELS, options, strict=False)]
    lines = [words, "Answer with the letter or digit of one of these:", *listed]
    return "\n".join(filter(None, lines)), LABELS[: len(options)]


def _line(name: str, what: JsonValue) -> str:
    """Return an option with what it stands for."""
    return name if what is None else f"{name} ({words_in(what)})"


def _read(question: Question, of: Sequence[float]) -> Answer:
    """Return the answer that a distribution over a question's values is."""
    match question:
        case Choice(criteria=named):
            probabilities = dict(zip(named, of, strict=True))
            best = max(probabilities, key=probabilities.__getitem__)
            return ChoiceAnswer(type="choice", choice=best, probabilities=probabilities, confidence=_confidence(of))
        case Score(criteria=levels):
            return ScoreAnswer(
                type="score",
                score=sum(at * p for at, p in enumerate(of)),
                legend=dict(enumerate(levels)),
                probabilities=dict(enumerate(of)),
                confidence=_confidence(of),
            )
    return NoulAnswer(type="noul", noul=of[0])


def _confidence(of: Sequence[float]) -> float:
    """Return how much of the distribution stands in one place: 1 where all does, 0 where none is preferred."""
    if len(of) < 2:
        return 1.0
    entropy = -sum(p * math.log(p) for p in of if p > 0)
    return min(1.0, max(0.0, 1 - entropy / math.log(len(of))))


async def _distribution(
    model: Model, about: str, question: str, values: Sequence[bool | str]
) -> tuple[list[float], TokenUsage]:
    """Return how probable each value is, in their order, together 1; and what that took."""
    body = obj(answer={"type": "boolean"} if values[0] is True else {"enum": [*values]})
    form = AnswerForm("decision", body, choices=(schemas.Choice.among("answer", values=values),))
    user = render("decision_user", about=data(about), question=question)
    messages = [SystemMessage(render("decision_system")), HumanMessage(user)]
    if not await model.fits(messages, MAX_TOKENS):
        raise RequestError(f"the input and the question are longer than {model.label} can read")
    answer = await model.answer(messages, form, sampling={"temperature": 0.0, "max_tokens": MAX_TOKENS})
    found = answer.choices[0].among if answer.choices else {}
    total = sum(found.values())
    if not total:
        raise DecisionError(f"{model.label} tells no probabilities of its tokens: use another model", answer.usage)
    return [found.get(option, 0.0) / total for option in form.choices[0].options], answer.usage
