"""Make only calls that account for the whole request; otherwise offer the nearest ones."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from packetgate.deciders.protocols import Selection
from packetgate.reflex.accounting import words_left_out
from packetgate.reflex.calls import (
    DOUBTED,
    MIN_ALTERNATIVE,
    argument_probabilities,
    calibrated_selection,
    log_probability,
    select,
    without_verdict,
)
from packetgate.reflex.fit import (
    MIN_TOOL_PROBABILITY,
    QUERIES,
    Fit,
    best_fits,
    fits_by_part,
    probability_of_any,
    unused_values,
)
from packetgate.reflex.follow_ups import completed_request
from packetgate.reflex.judge.calls import right_log_odds
from packetgate.reflex.reading import forbids_something, steps_in
from packetgate.reflex.signals import reflex_call_probability
from packetgate.state.base import ConfidenceSource
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import Alternative, Risk
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.reading import is_question, mentions_in, parts_in
from packetgate.tools.text.words import words_of

MIN_ARGUMENTS = {Risk.READ: 0.45, Risk.WRITE: 0.45, Risk.EXECUTE: 0.7}
"""Least probability that all arguments of a call are right, without queries and existing paths."""
MAX_NEAREST = 3
"""Most calls that are offered."""


def decide(packet: CognitionPacket, catalogue: Catalogue) -> Selection:
    """Return calls that account for each word of the current step; otherwise none, with the nearest calls. Blocking.

    Before the first step, the other steps are read too, so that no request is carried out by half.
    """
    selection = select(packet, catalogue)
    if packet.content.clarifications or selection.confidence_source is not ConfidenceSource.CALIBRATED:
        return selection
    fits, now = fits_by_part(packet, catalogue), packet.header.created_at.astimezone()
    for step in steps_in(completed_request(packet, catalogue))[1:] if not packet.routing.step else ():
        fits |= {part: best_fits(part, catalogue, now) for part in parts_in(step)}
    doubts = dict.fromkeys(doubt for part, one in fits.items() for doubt in _doubts_about(part, one))
    if forbids_something(packet.content.original_prompt) and any(_changes(one[0].spec) for one in fits.values() if one):
        doubts["it also says what not to do"] = None
    if not doubts:
        return selection
    near = [alternative for part, one in fits.items() for alternative in _nearest_calls(part, one)]
    return calibrated_selection(
        action="none",
        confidence=selection.confidence,
        reasoning=f"nothing was done, because this request is not clear enough: {'; '.join(doubts)}",
        alternatives=tuple(near)[:MAX_NEAREST],
    )


def _doubts_about(part: str, fits: Sequence[Fit]) -> Iterator[str]:
    """Yield the reasons why the best call for a part of a request may not be what the user means."""
    if not fits or probability_of_any(fits) < MIN_TOOL_PROBABILITY:
        yield "no tool matches it"
        return
    best, filling = fits[0], fits[0].fillings[0]
    if best.probability < MIN_TOOL_PROBABILITY:
        yield f"`{best.spec.name}` and `{fits[1].spec.name}` match it about equally"
    if is_question(part) and _changes(best.spec):
        yield f"it is a question, and `{best.spec.name}` may change something"
    if left_out := words_left_out(part, best.spec, best.fillings):
        words = ", ".join(f'"{word}"' for word in left_out)
        yield f"`{best.spec.name}` leaves out {words}"
    if filling.missing:
        return
    exist = best.spec.paths_exist
    if exist and not exist(filling.params) and not mentions_in(part).paths:
        yield f"`{best.spec.name}` finds no such file or folder"
    arguments = argument_probabilities(filling.params, filling)
    unsure = {
        name: probability
        for name, probability in arguments.items()
        if not _is_query(name, best.spec) and not _exists(name, filling.params, best.spec)
    }
    if math.prod(unsure.values()) < MIN_ARGUMENTS[best.spec.apparent_risk] or filling.uses_words_twice:
        names = [name for name, probability in unsure.items() if probability < DOUBTED] or [*filling.params]
        yield f"uncertain arguments: {', '.join(f'`{name}`' for name in names)}"
    signals = best.call_signals(
        log_probability(arguments), len(filling.params), len(unused_values(part, best.fillings))
    )._replace(right=right_log_odds(without_verdict(part), best.spec, filling.params))
    probability = reflex_call_probability(signals)
    if len(best.fillings) == 1 and probability < DOUBTED:
        yield f"`{best.spec.name}` is meant with a probability of only {probability:.2f}"


def _changes(spec: ToolSpec) -> bool:
    return spec.apparent_risk is not Risk.READ


def _is_query(name: str, spec: ToolSpec) -> bool:
    return spec.apparent_risk is Risk.READ and bool(QUERIES & {*words_of(name)})


def _exists(name: str, params: Mapping[str, Any], spec: ToolSpec) -> bool:
    """Return whether an argument names one existing file or folder, by its path or by other words."""
    return (
        name in params
        and spec.path_certainty is not None
        and spec.path_certainty(name, spec.resolved(params)[name]) == 1
    )


def _nearest_calls(part: str, fits: Sequence[Fit]) -> Iterator[Alternative]:
    """Yield the calls that may be meant, complete ones first. A change that leaves out a word is not among them."""
    for fit in sorted(fits, key=lambda fit: bool(fit.missing)):
        leaves_out = bool(words_left_out(part, fit.spec, fit.fillings))
        if fit.probability >= MIN_ALTERNATIVE and not (leaves_out and _changes(fit.spec)):
            for filling in fit.fillings if fit.values or not fit.missing else ():
                params = fit.spec.resolved(filling.params)
                yield Alternative(tool_name=fit.spec.name, params=params, reason=fit.reason)
