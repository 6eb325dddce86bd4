"""What a model's selection is worth beside the reflexes', and a review by all the evidence there is for a call."""

import asyncio
from collections.abc import Mapping

from packetgate.deciders.language.checking import YES, odds_of
from packetgate.deciders.language.evidence import read_evidence, right
from packetgate.deciders.outcome import traced
from packetgate.deciders.protocols import CallReview, Review, Selection, WantedCall
from packetgate.deciders.reflex.review import against_of
from packetgate.deciders.reflex.selection import select
from packetgate.deciders.reflex.serving import log_odds
from packetgate.models.model import Model
from packetgate.state.base import ConfidenceSource, TokenUsage
from packetgate.state.packet import CognitionPacket
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.learned import DIGITS
from packetgate.tools.provenance.evidence import evidence_of

APPROVED = 0.5
"""Probability from which on a call counts as approved; how sure that must be, the gate's threshold says."""
WORTHWHILE = 0.1
"""Probability from which a call is proposed: of those below it one in fourteen turned out right."""
SURE = 0.8
"""Probability from which a call of the reflexes is made without asking a slow model."""
SUREST = 4.0
"""Log odds of a yes that no model exceeds by much."""
_SOURCE = ConfidenceSource.CALIBRATED


async def review_by_evidence(
    model: Model, packet: CognitionPacket, catalogue: Catalogue, *, threshold: float | None = None
) -> Review:
    """Say how probably each call of a pass is right: the model is asked about each, yes or no.

    Args:
        threshold: the gate's, where the model made the calls itself: it is asked only about those that its answer may
            bring over it, or below.

    Raises:
        DecisionError: the model cannot be asked.
    """
    own = await asyncio.to_thread(select, packet, catalogue)
    reviews, spent = [], TokenUsage()
    for call in packet.routing.calls:
        spec = catalogue.get(call.tool_name)
        if spec is None:
            gone = CallReview(call_id=call.call_id, approved=False, confidence=0.0, reasoning="the tool is gone")
            reviews.append(gone)
            continue
        evidence = call.evidence | await asyncio.to_thread(read_evidence, call, packet, catalogue, own)
        if threshold is None or _may_decide(evidence, threshold):
            odds = await odds_of(model, packet.content.user_words, spec, call.params)
            spent += odds.usage
            evidence |= {"yes": round(log_odds(odds.of[YES]), DIGITS)}
        sure = right(evidence)
        reviews.append(
            CallReview(
                call_id=call.call_id,
                approved=sure >= APPROVED,
                confidence=sure,
                confidence_source=_SOURCE,
                evidence=evidence,
                reasoning=told(evidence, [why for _, why in against_of(call, packet)]),
            )
        )
    return Review(reviews=tuple(reviews), confidence_source=_SOURCE, decided_by="model", usage=spent)


def _may_decide(evidence: Mapping[str, float], threshold: float) -> bool:
    """Whether the model's yes or no may bring a call over the gate, or keep it from there."""
    return right({**evidence, "yes": -SUREST}) < threshold <= right({**evidence, "yes": SUREST})


def told(evidence: Mapping[str, float], against: list[str]) -> str:
    """Return the evidence in words."""
    yes = evidence.get("yes")
    asked = "the model need not be asked" if yes is None else f"the model says {'yes' if yes >= 0 else 'no'}"
    others = {
        "same": "the same call without a model",
        "other": "another tool without a model",
        "nothing": "no tool without a model",
        "invented": "an argument that nobody named",
        "added": "an argument that nobody named and that it could do without",
        "left": "your words name what it does not take",
    }
    said = [why for name, why in others.items() if evidence.get(name)]
    return "; ".join([asked, *said, *against])


def sure_already(own: Selection, packet: CognitionPacket, catalogue: Catalogue) -> Selection | None:
    """Return what the reflexes chose, where they are sure of a call; None where a model is to be asked. Blocking."""
    if own.action != "call" or min(_probabilities(own, own, packet, catalogue)) < SURE:
        return None
    return own.explained(f"{own.reasoning}; so surely that the model was not asked")


def likelier(chosen: Selection, own: Selection, packet: CognitionPacket, catalogue: Catalogue) -> Selection:
    """Return what the model chose, or what the reflexes chose, where that is likelier to be right. Blocking.

    A call that is hardly ever right is not made, nor asked about: they say what it lacks, or the turn ends in words.
    """
    if own.action == "describe" or chosen.action == "clarify":
        return chosen
    if chosen.acts is not None:
        own = own.with_evidence({"acts": round(log_odds(chosen.acts), DIGITS), "passed_over": 1.0})
    sure = _probabilities(chosen, own, packet, catalogue)
    others = min(_probabilities(own, own, packet, catalogue), default=0.0)
    kept = [one for one, probability in zip(chosen.calls, sure, strict=True) if probability >= WORTHWHILE]
    least = min((one for one in sure if one >= WORTHWHILE), default=0.0)
    if others > max(least, WORTHWHILE):
        return own.in_stead_of(chosen)
    if kept or not chosen.calls:
        return chosen.with_calls(kept)
    return own.with_calls(()).in_stead_of(chosen)


def _probabilities(selection: Selection, own: Selection, packet: CognitionPacket, catalogue: Catalogue) -> list[float]:
    """Return the probability that each call of a selection is right."""
    known = evidence_of(packet)

    def probability(one: WantedCall) -> float:
        if one.tool_name not in catalogue:
            return 0.0
        call = traced(one.tool_name, one.params, catalogue[one.tool_name], known)
        return right(one.evidence | read_evidence(call, packet, catalogue, own))

    return [probability(one) for one in selection.calls]
