"""Typed questions with a probability for an answer: put to a decision endpoint, as a review, or answered by a model."""

import string
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_core.messages import HumanMessage, SystemMessage

from packetgate.deciders.language.prompting import data
from packetgate.deciders.language.review import to_review
from packetgate.deciders.protocols import CallReview, Review
from packetgate.models.model import Model
from packetgate.models.schemas import AnswerForm, Choice, obj
from packetgate.prompts.rendering import render
from packetgate.state.base import ConfidenceSource, TokenUsage
from packetgate.state.context import RoutingContext
from packetgate.state.errors import DecisionError, RequestError
from packetgate.state.packet import CognitionPacket
from packetgate.tools.catalogue.catalogue import Catalogue

if TYPE_CHECKING:
    from packetgate.models.openai.decisions import DecisionEndpoint

DecisionSource = Callable[[], Awaitable["DecisionEndpoint"]]

APPROVED = 0.5
"""The probability from which on a call counts as approved; how sure that is, the gate's threshold says."""
LABELS = string.ascii_uppercase + string.ascii_lowercase + string.digits
"""By which options are told apart: each begins differently, so that one token decides."""
MAX_TOKENS = 32
"""Of an answer."""


async def review_by_decisions(
    source: DecisionSource, packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext
) -> Review:
    """Ask a decision endpoint about each call of a pass. A call that it does not answer about is not judged: 0.0.

    Raises:
        DecisionError: it cannot be asked, or answers about none.
    """
    endpoint, numbered = await source(), {f"call_{at}": call for at, call in enumerate(packet.routing.calls, start=1)}
    statements = {name: render("decision_review", number=name.removeprefix("call_")) for name in numbered}
    found = await endpoint.probabilities(to_review(packet, catalogue), statements)
    reviews = tuple(
        CallReview(
            call_id=numbered[name].call_id,
            approved=probability >= APPROVED,
            confidence=max(probability, 1 - probability),
            confidence_source=ConfidenceSource.ENDPOINT,
            reasoning=f"{endpoint.name}: {probability:.2f} that it should run",
        )
        for name, probability in found.of.items()
    )
    return Review(reviews=reviews, confidence_source=ConfidenceSource.ENDPOINT, decided_by="model", usage=found.usage)


@dataclass(frozen=True)
class Distribution:
    """How probable each option is, in their order; together 1."""

    of: tuple[float, ...]
    usage: TokenUsage


async def how_probable(model: Model, about: str, question: str) -> Distribution:
    """Return the probabilities of yes and of no.

    Raises:
        RequestError: it is too long for the model.
        DecisionError: the model cannot be asked, or tells no probabilities.
    """
    form = AnswerForm(
        "decision", obj(answer={"type": "boolean"}), choices=(Choice.among("answer", values=[True, False]),)
    )
    return await _distribution(model, about, f"{question}\nAnswer true or false.", form)


async def which(model: Model, about: str, question: str, options: Sequence[str]) -> Distribution:
    """Return the probabilities of options, of which there are at most as many as `LABELS`.

    Raises:
        RequestError: it is too long for the model.
        DecisionError: the model cannot be asked, or tells no probabilities.
    """
    labels = LABELS[: len(options)]
    listed = "\n".join(f"{label}: {' '.join(option.split())}" for label, option in zip(labels, options, strict=True))
    form = AnswerForm("decision", obj(answer={"enum": [*labels]}), choices=(Choice.among("answer", values=labels),))
    return await _distribution(
        model, about, f"{question}\nAnswer with the letter or digit of one of these:\n{listed}", form
    )


async def _distribution(model: Model, about: str, question: str, form: AnswerForm) -> Distribution:
    user = render("decision_user", about=data(about), question=question)
    messages = [SystemMessage(render("decision_system")), HumanMessage(user)]
    if not await model.fits(messages, MAX_TOKENS):
        raise RequestError(f"the input and the question are longer than {model.label} can read")
    answer = await model.answer(messages, form, sampling={"temperature": 0.0, "max_tokens": MAX_TOKENS})
    found = answer.choices[0].among if answer.choices else {}
    total = sum(found.values())
    if not total:
        raise DecisionError(f"{model.label} tells no probabilities of its tokens: use another model", answer.usage)
    return Distribution(tuple(found.get(option, 0.0) / total for option in form.choices[0].options), answer.usage)
