"""Review without a model: how probably a call is right, and each check that does not hold, in words."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from packetgate.deciders.protocols import CallReview, Review
from packetgate.deciders.reflex.fit import LEAST, Fit, fits_of, left_over, values_of
from packetgate.deciders.reflex.following import step_of
from packetgate.deciders.reflex.practice import is_practised
from packetgate.deciders.reflex.reading import access_of, parts_in, reserve_in, steps_in
from packetgate.deciders.reflex.serving import Sureness, sure
from packetgate.deciders.values.filling import Filling
from packetgate.state.base import ConfidenceSource
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import Risk, ToolCall
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.text.words import words_of

NOT_ASKED_FOR = 0.3
NOT_GROUNDED = 0.4
NOT_LOOKED_AT = 0.5
DOUBTED = 0.7
"""Probability below which a doubt is told."""
NEARLY = 0.3
"""Share, beside that of the call's tool, from which another tool fits nearly as well."""
OTHERWISE = 0.2
"""Probability of an argument that the request was not read for."""


def review(packet: CognitionPacket, catalogue: Catalogue) -> Review:
    """Approve of calls whose arguments are the user's and whose risk the request asks for, as surely as they fit it.

    Blocking.
    """
    reviews = tuple(_judge(call, packet, catalogue) for call in packet.routing.calls)
    fitted = all(one.confidence_source is ConfidenceSource.CALIBRATED for one in reviews)
    source = ConfidenceSource.CALIBRATED if fitted else ConfidenceSource.RULE
    return Review(reviews=reviews, decided_by="reflex", confidence_source=source)


def _judge(call: ToolCall, packet: CognitionPacket, catalogue: Catalogue) -> CallReview:
    if call.tool_name not in catalogue:
        return CallReview(call_id=call.call_id, approved=False, confidence=0.0, reasoning="the tool is gone")
    against = against_of(call, packet)
    told, doubts = told_of(call, packet, catalogue)
    likely = sure(told)
    reasons = [why for _, why in against] + (doubts if likely < DOUBTED else [])
    return CallReview(
        call_id=call.call_id,
        approved=not against,
        confidence=min([likely, *(most for most, _ in against)]),
        confidence_source=ConfidenceSource.RULE if against else ConfidenceSource.CALIBRATED,
        reasoning="; ".join(reasons) or "valid, in your own words, and what the request asks for",
    )


def against_of(call: ToolCall, packet: CognitionPacket) -> list[tuple[float, str]]:
    """Return what speaks against the call at all, each with the confidence that is left."""
    found = []
    if not any(call.looks in access_of(step).risks for step in steps_in(packet.content.user_words)):
        found.append((NOT_ASKED_FOR, f"the request does not ask for {call.looks} access"))
    reserve = reserve_in(packet.content.user_words) if call.looks is not Risk.READ else ""
    if reserve:
        found.append((NOT_LOOKED_AT, f"your words have an `{reserve}`, and nobody looked whether it holds"))
    if call.foreign:
        foreign = ", ".join(f"`{name}` (from {origin.source})" for name, origin in call.foreign.items())
        found.append((NOT_GROUNDED, f"not in your words: {foreign}"))
    return found


def told_of(call: ToolCall, packet: CognitionPacket, catalogue: Catalogue) -> tuple[Sureness, list[str]]:
    """Return what tells how probably the call is right, and what makes it less than sure: of the part it fits best.

    Blocking. Whoever chose the call, it is read as if it had been chosen here.
    """
    now = packet.header.created_at.astimezone()
    found = [(text, fits_of(text, catalogue, now, also=call.tool_name)) for text in parts_in(step_of(packet))]
    fits = {text: _as_meant(next(fit for fit in held if fit.spec.name == call.tool_name)) for text, held in found}
    text = max(fits, key=lambda one: (any(call.params == made.params for made in fits[one].fillings), fits[one].share))
    fit = fits[text]
    filling = _nearest(call.params, fit.fillings)
    arguments = likelihoods(call.params, filling, answered=bool(packet.content.clarifications))
    left = _left(text, fit, packet)
    fit = replace(
        fit,
        share=min(1.0, sum(one.share for one in dict(found)[text] if one.spec is fit.spec or _does_the_same(one, fit))),
    )
    told = fit.told(log_probability(arguments), len(call.params), len(left))
    rival = next((one for one in dict(found)[text] if one.spec is not fit.spec and not _does_the_same(one, fit)), None)
    return told, [*_doubts(fit, rival, arguments, left)]


def _as_meant(fit: Fit) -> Fit:
    """Return the fit with the arguments of a built-in tool as they are meant: the call's own are. Blocking."""
    meant = fit.spec.meant
    return (
        replace(fit, fillings=tuple(replace(one, params=meant(one.params)) for one in fit.fillings)) if meant else fit
    )


def _does_the_same(one: Fit, other: Fit) -> bool:
    """Whether either of two reading tools would do: of one server and verb, or one built in, with the same values."""
    if {one.spec.looks, other.spec.looks} != {Risk.READ} or not values_of(one) or values_of(one) != values_of(other):
        return False
    verb, other_verb = (words_of(fit.spec.upstream_name)[:1] for fit in (one, other))
    known = is_practised(one.spec) and one.spec.server != other.spec.server
    return known or (one.spec.server == other.spec.server and verb == other_verb)


def _doubts(fit: Fit, rival: Fit | None, arguments: Mapping[str, float], left: Sequence[str]) -> Sequence[str]:
    guessed = ", ".join(f"`{name}`" for name, likely in arguments.items() if likely < DOUBTED)
    doubts = {
        f"`{rival.spec.name}` fits nearly as well" if rival else "": rival is not None and rival.share >= NEARLY,
        "it may not be what you asked for": fit.share < DOUBTED and (rival is None or rival.share < NEARLY),
        f"a guess: {guessed}": bool(guessed),
        "your words also name what it does not take: " + ", ".join(f"`{one}`" for one in left): bool(left),
    }
    return [why for why, holds in doubts.items() if holds] or ["few such calls turned out right"]


def _left(text: str, fit: Fit, packet: CognitionPacket) -> list[str]:
    """Return what the part names and no call of the step takes: a file, a number, an address, a quoted text."""
    made = (*packet.routing.step_calls, *packet.routing.queued_calls)
    held = " ".join(json.dumps(call.params, ensure_ascii=False) for call in made).casefold()
    return [said for said in left_over(text, fit.fillings) if said.casefold() not in held]


def _nearest(params: Mapping[str, Any], fillings: Sequence[Filling]) -> Filling:
    """Return the filling that a call was made from."""
    return max(fillings, key=lambda one: sum(params.get(name) == value for name, value in one.params.items()))


def likelihoods(params: Mapping[str, Any], filling: Filling, *, answered: bool = False) -> dict[str, float]:
    """Return how probably each parameter gets what it should; what the user was asked for is as it was answered."""
    names = dict.fromkeys([*params, *(one.path[0] for one in filling.arguments)])
    return {name: _likely(name, params, filling, 1.0 if answered else OTHERWISE) for name in names}


def log_probability(arguments: Mapping[str, float]) -> float:
    """Return the log of the probability that all arguments are right."""
    return max(math.log(LEAST), sum(map(math.log, arguments.values())))


def _likely(name: str, params: Mapping[str, Any], filling: Filling, otherwise: float) -> float:
    if params.get(name) != filling.params.get(name):
        return otherwise
    return math.prod(one.probability for one in filling.arguments if one.path[0] == name)
