"""Review calls with a decision model, and answer typed questions by the probabilities of a chat model's tokens."""

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

from packetgate.deciders.language.prompting import fenced_text
from packetgate.deciders.language.review import calls_to_review
from packetgate.deciders.protocols import Review
from packetgate.gate.confidence import CallReview
from packetgate.models.decision_models import ask_decision_model, state_text
from packetgate.models.model import Model
from packetgate.prompts.rendering import render
from packetgate.state.base import ConfidenceSource, TokenUsage
from packetgate.state.context import RoutingContext
from packetgate.state.errors import DecisionError, RequestError
from packetgate.state.packet import CognitionPacket
from packetgate.tools.catalogue.catalogue import Catalogue

if TYPE_CHECKING:
    from langchain_core.decisions import BaseDecisionModel

DecisionSource = Callable[[], Awaitable["BaseDecisionModel"]]
_APPROVED = 0.5
_LABELS = string.ascii_uppercase + string.ascii_lowercase + string.digits
"""Labels of options. Each label is one character, so that one token names the option."""
_MAX_TOKENS = 32


async def review_by_decisions(
    source: DecisionSource, packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext
) -> Review:
    """Return a decision model's review of a pass's calls. A call without an answer gets confidence 0.0."""
    model, numbered = await source(), {f"call_{at}": call for at, call in enumerate(packet.routing.calls, start=1)}
    questions = {
        name: Noul(instructions=render("decision_review", number=name.removeprefix("call_"))) for name in numbered
    }
    response, usage = await ask_decision_model(model, calls_to_review(packet, catalogue), questions)
    probabilities = {name: answer.noul for name, answer in response.nouls.items() if name in numbered}
    if not probabilities:
        raise DecisionError(f"{model.model} returned no probability for any call: use another model", usage)
    reviews = tuple(
        CallReview(
            call_id=numbered[name].call_id,
            approved=probability >= _APPROVED,
            confidence=max(probability, 1 - probability),
            confidence_source=ConfidenceSource.ENDPOINT,
            reasoning=f"{model.model}: probability that the call should run: {probability:.2f}",
        )
        for name, probability in probabilities.items()
    )
    return Review(reviews=reviews, confidence_source=ConfidenceSource.ENDPOINT, decided_by="model", usage=usage)


async def answer_by_probability(model: Model, about: str, questions: Mapping[str, Question]) -> ClassifierResponse:
    """Answer questions by the probabilities of a model's tokens. Raise RequestError if a question is not supported.

    Args:
        about: the input that the questions are about.
    """
    prompts = {name: _question_and_options(question) for name, question in questions.items()}
    answers: dict[str, Answer] = {}
    total = TokenUsage()
    for name, question in questions.items():
        probabilities, usage = await _option_probabilities(model, about, *prompts[name])
        answers[name], total = _answer(question, probabilities), total + usage
    usage_of_all = UsageMetadata(
        input_tokens=total.input_tokens,
        output_tokens=total.output_tokens,
        total_tokens=total.input_tokens + total.output_tokens,
        input_token_details=InputTokenDetails(cache_read=total.cached_tokens),
    )
    return ClassifierResponse(model=model.name, answers=answers, usage=usage_of_all)


def _question_and_options(question: Question) -> tuple[str, Sequence[bool | str]]:
    """Return a question as text, and the possible answers."""
    words = state_text(question.instructions)
    match question:
        case Noul(criteria=criteria):
            meanings = criteria or NoulCriteria()
            pairs = (("true", meanings.true), ("false", meanings.false))
            lines = [_option(name, about) for name, about in pairs if about is not None]
            return "\n".join(filter(None, [words, *lines, "Answer true or false."])), [True, False]
        case Choice(criteria=named):
            options = [_option(name, about) for name, about in named.items()]
        case Score(criteria=levels):
            words = f"{words}\nThe levels go from the lowest to the highest.".lstrip()
            options = [state_text(level) for level in levels]
        case _:
            message = f"questions of type {question.type} are not supported: use a noul, a choice or a score"
            raise RequestError(message)
    if len(options) > len(_LABELS):
        raise RequestError(f"the {question.type} has {len(options)} options: give at most {len(_LABELS)}")
    listed = [f"{label}: {' '.join(option.split())}" for label, option in zip(_LABELS, options, strict=False)]
    lines = [words, "Answer with the letter or digit of one of these:", *listed]
    return "\n".join(filter(None, lines)), _LABELS[: len(options)]


def _option(name: str, about: JsonValue) -> str:
    return name if about is None else f"{name} ({state_text(about)})"


def _answer(question: Question, probabilities: Sequence[float]) -> Answer:
    entropy = -sum(p * math.log(p) for p in probabilities if p > 0)
    confidence = min(1.0, max(0.0, 1 - entropy / math.log(len(probabilities)))) if len(probabilities) > 1 else 1.0
    match question:
        case Choice(criteria=named):
            by_name = dict(zip(named, probabilities, strict=True))
            best = max(by_name, key=by_name.__getitem__)
            return ChoiceAnswer(type="choice", choice=best, probabilities=by_name, confidence=confidence)
        case Score(criteria=levels):
            return ScoreAnswer(
                type="score",
                score=sum(at * p for at, p in enumerate(probabilities)),
                legend=dict(enumerate(levels)),
                probabilities=dict(enumerate(probabilities)),
                confidence=confidence,
            )
    return NoulAnswer(type="noul", noul=probabilities[0])


async def _option_probabilities(
    model: Model, about: str, question: str, options: Sequence[bool | str]
) -> tuple[list[float], TokenUsage]:
    """Return the probability of each option, and the tokens used."""
    user = render("decision_user", about=fenced_text(about), question=question)
    messages = [SystemMessage(render("decision_system")), HumanMessage(user)]
    if not await model.fits(messages, _MAX_TOKENS):
        raise RequestError(f"the input and the question exceed the context of {model.label}: shorten the input")
    words = tuple(option if isinstance(option, str) else str(option).lower() for option in options)
    answer = await model.word_probabilities(messages, words, max_tokens=_MAX_TOKENS)
    if not answer.by_word:
        raise DecisionError(f"{model.label} returns no token probabilities: use another model", answer.usage)
    return [*answer.by_word.values()], answer.usage
