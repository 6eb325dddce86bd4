"""Weigh the evidence for a call: the model's token probabilities, its yes or no, and how the request can be read.

`evidence.json` holds the weights; `python -m benchmarks.train.evidence` fits them.
"""

import asyncio
import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from packetgate.deciders.language.prompting import fenced_text, without_control_tokens
from packetgate.deciders.outcome import traced_call
from packetgate.deciders.protocols import CallReview, Review, SelectedCall, Selection
from packetgate.deciders.reflex.calls import (
    call_signals,
    objections_to,
    reflex_call_signals,
    review_of_missing_tool,
    select,
)
from packetgate.deciders.reflex.signals import (
    call_log_odds,
    is_known_builtin,
    log_odds,
    logistic,
    reflex_call_probability,
)
from packetgate.models.calling import WordProbabilities, WrittenCall
from packetgate.models.model import Model
from packetgate.prompts.rendering import render
from packetgate.state.base import ConfidenceSource, TokenUsage
from packetgate.state.packet import CognitionPacket
from packetgate.state.printing import compact_json
from packetgate.state.routing import ToolCall
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.learned import DIGITS, load_json
from packetgate.tools.provenance.sources import source_texts
from packetgate.tools.provenance.values import find_words, fold_text
from packetgate.tools.spec.tool_spec import ToolSpec

EVIDENCE_FITTED = Path(__file__).with_name("evidence.json")
YES, NO = "yes", "no"
_BRIEF_CHARS = 300
_LEAST = 1e-3  # lowest probability
_MOST = 3.0  # largest log odds of a piece of evidence
_APPROVED = 0.5
_WORTHWHILE = 0.1  # least probability of a proposed call: below it, one call in fourteen was right
_SURE = 0.8  # probability from which a call of `reflex` is made without asking a slow model
_SUREST = 4.0  # log odds of a yes that models rarely exceed


class CallEvidence(NamedTuple):
    """Evidence for a call; the weight of each piece has the same name."""

    always: float = 1.0
    same: float = 0.0  # `reflex` would make this call
    read: float = 0.0  # log odds of `reflex` for a call that it would make
    judged: float = 0.0  # log odds of `reflex` for any other call
    written: float = 0.0  # the model wrote it; otherwise `name` and `arguments` are 0
    name: float = 0.0  # log odds of the tool's name
    arguments: float = 0.0  # log probability of all arguments
    yes: float = 0.0  # log odds of the prime model's yes
    acts: float = 0.0  # log odds that the model calls at all
    passed_over: float = 0.0  # the model made another call, or none
    practised: float = 0.0  # `reflex` would make it, of a built-in tool

    @classmethod
    def of(cls, known: Mapping[str, float]) -> "CallEvidence":
        """Return the pieces of evidence among all signals."""
        return cls(**{name: max(-_MOST, min(_MOST, value)) for name, value in known.items() if name in cls._fields})


class CallNeedEvidence(NamedTuple):
    """Evidence that a request needs a call."""

    always: float = 1.0
    acts: float = 0.0
    needed: float = 0.0


class EvidenceWeights(NamedTuple):
    """The weights of all kinds of evidence."""

    checked: CallEvidence  # with the prime model's yes or no
    unchecked: CallEvidence  # without it
    acting: CallNeedEvidence


@cache
def load_weights() -> EvidenceWeights:
    """Return the shipped weights. Raise WeightsError if the file is missing or broken."""

    def weights(held: dict[str, dict[str, float]]) -> EvidenceWeights:
        checked, unchecked = CallEvidence(**held["checked"]), CallEvidence(**held["unchecked"])
        return EvidenceWeights(checked, unchecked, CallNeedEvidence(**held["acting"]))

    return load_json(EVIDENCE_FITTED, weights)


def correctness_probability(evidence: Mapping[str, float]) -> float:
    """Return the probability that a call is right."""
    weights = load_weights()
    return logistic(CallEvidence.of(evidence), weights.checked if "yes" in evidence else weights.unchecked)


def needs_call(call_probability: float, tool_probability: float) -> float:
    """Return the probability that a request needs a call.

    Args:
        call_probability: that the model calls a tool.
        tool_probability: that some tool serves the request.
    """
    return logistic(
        CallNeedEvidence(acts=log_odds(call_probability), needed=log_odds(tool_probability)), load_weights().acting
    )


def evidence_from_tokens(call: WrittenCall, call_probability: float | None) -> dict[str, float]:
    """Return the evidence of a selection's own tokens; empty if they were not measured."""
    if call.name_probability is None and call_probability is None:
        return {}
    values = [math.log(max(_LEAST, one)) for one in call.probabilities.values()]
    found = {"written": 1.0}
    if call_probability is not None:
        found["acts"] = log_odds(call_probability)
    if call.name_probability is not None:
        found["name"] = log_odds(call.name_probability)
    if values:
        found["arguments"] = max(math.log(_LEAST), sum(values))
    return {name: round(value, DIGITS) for name, value in found.items()}


def evidence_from_request(
    call: ToolCall, packet: CognitionPacket, catalogue: Catalogue, own: Selection
) -> dict[str, float]:
    """Return the evidence in the request for a call, given the selection of `reflex`. Blocking."""
    signals = call_signals(call, packet, catalogue)
    alike = [one.params for one in own.calls if one.tool_name == call.tool_name]
    made = call.params in alike
    odds = (
        log_odds(reflex_call_probability(reflex_call_signals(call, packet, catalogue)[0]))
        if made
        else call_log_odds(signals)
    )
    names = {one.tool_name for one in own.calls} | {*own.asks_for[:1]}
    words = packet.content.user_words
    found = {
        "practised": float(made and is_known_builtin(catalogue[call.tool_name])),
        "read" if made else "judged": odds,
        "same": float(made or any(_agree(call.params, params, words) for params in alike)),
        "other": float(bool(names) and call.tool_name not in names),
        "nothing": float(own.action == "none"),
    }
    seen = {name: value for name, value in signals._asdict().items() if name not in {"always", "words"} and value}
    return {name: round(value, DIGITS) for name, value in (seen | found).items()}


def _agree(params: Mapping[str, Any], others: Mapping[str, Any], request: str) -> bool:
    # the values equal the other call's values, or are texts of the request that contain them
    def contains(text: str, part: str) -> bool:
        return find_words(fold_text(text), fold_text(part)) >= 0

    return params.keys() == others.keys() and all(
        value == others[name]
        or (
            isinstance(value, str)
            and isinstance(others[name], str)
            and contains(value, others[name])
            and contains(request, value)
        )
        for name, value in params.items()
    )


async def yes_no_probabilities(
    model: Model, request: str, spec: ToolSpec, params: Mapping[str, Any]
) -> WordProbabilities:
    """Return the model's probabilities of yes and no to a call."""
    messages: list[BaseMessage] = [SystemMessage(render("check_system"))]
    for example_request, name, brief, example_params, verdict in _EXAMPLES:
        messages += [HumanMessage(_question(example_request, name, brief, example_params)), AIMessage(verdict)]
    question = _question(request, spec.name, without_control_tokens(spec.brief[:_BRIEF_CHARS]), params)
    return await model.word_probabilities([*messages, HumanMessage(question)], (YES, NO))


def _question(request: str, name: str, brief: str, params: Mapping[str, Any]) -> str:
    call = without_control_tokens(f"{name}({compact_json(dict(params))})")
    return render("check_user", request=fenced_text(request), tool=f"{name}: {brief}", call=call)


# fmt: off
_EXAMPLES: tuple[tuple[str, str, str, dict[str, Any], str], ...] = (
    ("Play some jazz in the kitchen, not too loud: 30 percent.", "play_music", "Plays music in a room.",
     {"genre": "jazz", "room": "kitchen", "volume": 30}, YES),
    ("Which of my meetings on 4 June can be moved?", "add_meeting", "Adds a meeting to the calendar.",
     {"title": "meeting", "date": "4 June"}, NO),
    ("How do bees find their way home?", "search_flights", "Finds flights between two airports.",
     {"origin": "home", "destination": "bees"}, NO),
    ("Convert 12 miles to kilometres", "convert_length", "Converts a length to another unit.",
     {"value": 12, "from": "miles", "to": "kilometres"}, YES),
    ("Remind me at 8 to water the plants", "set_reminder", "Sets a reminder.",
     {"text": "water the plants", "time": "20:30"}, NO),
)
# fmt: on
"""Request, tool, description, arguments and verdict of worked examples."""


async def review_by_evidence(
    model: Model, packet: CognitionPacket, catalogue: Catalogue, *, threshold: float | None = None
) -> Review:
    """Review each call of a pass by all evidence, with the model's yes or no.

    With a `threshold`, the model is asked only if that can decide, because it selected the calls.
    """
    own = await asyncio.to_thread(select, packet, catalogue)
    reviews, usage, source = [], TokenUsage(), ConfidenceSource.CALIBRATED
    for call in packet.routing.calls:
        spec = catalogue.get(call.tool_name)
        if spec is None:
            reviews.append(review_of_missing_tool(call))
            continue
        evidence = call.evidence | await asyncio.to_thread(evidence_from_request, call, packet, catalogue, own)
        lowest, highest = (correctness_probability({**evidence, "yes": odds}) for odds in (-_SUREST, _SUREST))
        if threshold is None or lowest < threshold <= highest:
            odds = await yes_no_probabilities(model, packet.content.user_words, spec, call.params)
            usage += odds.usage
            evidence |= {"yes": round(log_odds(odds.of[YES]), DIGITS)}
        probability = correctness_probability(evidence)
        reviews.append(
            CallReview(
                call_id=call.call_id,
                approved=probability >= _APPROVED,
                confidence=probability,
                confidence_source=source,
                evidence=evidence,
                reasoning="; ".join([*_reasons(evidence), *(why for _, why in objections_to(call, packet))]),
            )
        )
    return Review(reviews=tuple(reviews), confidence_source=source, decided_by="model", usage=usage)


_REASONS = {
    "same": "the rule-based decider selects the same call",
    "other": "the rule-based decider selects another tool",
    "nothing": "the rule-based decider selects no tool",
    "invented": "an argument has no source in the request",
    "added": "an optional argument has no source in the request",
    "left": "a value of the request is unused",
}


def _reasons(evidence: Mapping[str, float]) -> list[str]:
    yes = evidence.get("yes")
    verdict = "the model was not asked" if yes is None else f"the model says {'yes' if yes >= 0 else 'no'}"
    return [verdict, *(why for name, why in _REASONS.items() if evidence.get(name))]


def select_if_sure(own: Selection, packet: CognitionPacket, catalogue: Catalogue) -> Selection | None:
    """Return the selection of `reflex` if it is sure of its calls. Blocking."""
    if own.action != "call" or min(_probabilities(own, own, packet, catalogue)) < _SURE:
        return None
    return own.changed(reasoning=f"{own.reasoning}; certain enough to skip the model")


def likelier_selection(chosen: Selection, own: Selection, packet: CognitionPacket, catalogue: Catalogue) -> Selection:
    """Return the likelier selection, the model's or that of `reflex`, without improbable calls. Blocking."""
    if own.action == "describe" or chosen.action == "clarify":
        return chosen
    if chosen.call_probability is not None:
        known = {"acts": round(log_odds(chosen.call_probability), DIGITS), "passed_over": 1.0}
        own = own.changed(calls=tuple(call.changed(evidence=call.evidence | known) for call in own.calls))
    probabilities = _probabilities(chosen, own, packet, catalogue)
    others = min(_probabilities(own, own, packet, catalogue), default=0.0)
    kept = [call for call, one in zip(chosen.calls, probabilities, strict=True) if one >= _WORTHWHILE]
    least = min((one for one in probabilities if one >= _WORTHWHILE), default=0.0)
    if others > max(least, _WORTHWHILE):
        return own.replacing(chosen)
    if kept or not chosen.calls:
        return chosen.with_calls(kept)
    return own.with_calls(()).replacing(chosen)


def _probabilities(selection: Selection, own: Selection, packet: CognitionPacket, catalogue: Catalogue) -> list[float]:
    known = source_texts(packet)

    def probability(wanted: SelectedCall) -> float:
        if wanted.tool_name not in catalogue:
            return 0.0
        call = traced_call(wanted.tool_name, wanted.params, catalogue[wanted.tool_name], known)
        return correctness_probability(wanted.evidence | evidence_from_request(call, packet, catalogue, own))

    return [probability(wanted) for wanted in selection.calls]
