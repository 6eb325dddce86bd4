"""Estimate whether a call is right: from the model's token probabilities, its yes or no, and the request's words.

`evidence.json` contains the weights. `python -m benchmarks.train.evidence` fits them.
"""

import asyncio
import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from packetgate.deciders.advice import NO_ADVISERS, Advisers
from packetgate.deciders.language.prompting import fenced_text, without_control_tokens
from packetgate.deciders.packets import facts_of
from packetgate.deciders.protocols import Review, Selection
from packetgate.gate.confidence import CallReview
from packetgate.models.decoding import WrittenCall
from packetgate.models.model import Model, WordProbabilities
from packetgate.prompts.rendering import render
from packetgate.state.base import ConfidenceSource, TokenUsage
from packetgate.state.packet import CognitionPacket
from packetgate.state.printing import compact_json
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.learned import DIGITS, load_json, log_odds, logistic
from packetgate.tools.spec.tool_spec import ToolSpec

EVIDENCE_FITTED = Path(__file__).with_name("evidence.json")
YES, NO = "yes", "no"
_BRIEF_CHARS = 300
_MIN_PROBABILITY = 1e-3
_MAX_LOG_ODDS = 3.0  # of one piece of evidence
_APPROVED = 0.5
_MIN_PROPOSED = 0.1  # lowest probability of a proposed call: below 0.1, one call in fourteen was right
_MAX_YES_LOG_ODDS = 4.0  # models rarely exceed these log odds of a yes


class CallEvidence(NamedTuple):
    """Evidence for a call. Each weight in `evidence.json` has the name of its piece of evidence."""

    always: float = 1.0  # constant: its weight is the intercept
    same: float = 0.0  # a scorer would make this call
    read: float = 0.0  # log odds of a scorer for a call that it would make
    judged: float = 0.0  # log odds of a scorer for any other call
    written: float = 0.0  # the model wrote the call; otherwise `name` and `arguments` are 0
    name: float = 0.0  # log odds of the tool's name
    arguments: float = 0.0  # log probability of all arguments
    yes: float = 0.0  # log odds of the prime model's yes
    acts: float = 0.0  # log odds that the model calls a tool
    passed_over: float = 0.0  # the model made another call, or no call
    practised: float = 0.0  # a scorer would make this call, and it knows its tool well

    @classmethod
    def from_signals(cls, signals: Mapping[str, float]) -> "CallEvidence":
        """Return the evidence among the signals of a call, bounded to ±3."""
        bounded = {name: max(-_MAX_LOG_ODDS, min(_MAX_LOG_ODDS, value)) for name, value in signals.items()}
        return cls(**{name: value for name, value in bounded.items() if name in cls._fields})


class CallNeedEvidence(NamedTuple):
    """Evidence that a request needs a call."""

    always: float = 1.0  # constant: its weight is the intercept
    acts: float = 0.0  # log odds that the model calls a tool
    needed: float = 0.0  # log odds that some tool serves the request


class EvidenceWeights(NamedTuple):
    """The weights of all kinds of evidence."""

    checked: CallEvidence  # used with the prime model's yes or no
    unchecked: CallEvidence  # used without a yes or no
    acting: CallNeedEvidence


@cache
def load_weights() -> EvidenceWeights:
    """Return the shipped weights. Raise WeightsError if the file is missing or broken."""

    def weights(content: dict[str, dict[str, float]]) -> EvidenceWeights:
        checked, unchecked = CallEvidence(**content["checked"]), CallEvidence(**content["unchecked"])
        return EvidenceWeights(checked, unchecked, CallNeedEvidence(**content["acting"]))

    return load_json(EVIDENCE_FITTED, weights)


def correctness_probability(evidence: Mapping[str, float]) -> float:
    """Return the probability that a call is right."""
    weights = load_weights()
    return logistic(CallEvidence.from_signals(evidence), weights.checked if "yes" in evidence else weights.unchecked)


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
    """Return the evidence from the tokens of a written call; empty if their probabilities were not measured."""
    if call.name_probability is None and call_probability is None:
        return {}
    logs = [math.log(max(_MIN_PROBABILITY, probability)) for probability in call.probabilities.values()]
    evidence = {"written": 1.0}
    if call_probability is not None:
        evidence["acts"] = log_odds(call_probability)
    if call.name_probability is not None:
        evidence["name"] = log_odds(call.name_probability)
    if logs:
        evidence["arguments"] = max(math.log(_MIN_PROBABILITY), sum(logs))
    return {name: round(value, DIGITS) for name, value in evidence.items()}


async def yes_no_probabilities(
    model: Model, request: str, spec: ToolSpec, params: Mapping[str, Any]
) -> WordProbabilities:
    """Return the probabilities that the model answers yes or no to a call."""
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
    model: Model,
    packet: CognitionPacket,
    catalogue: Catalogue,
    *,
    threshold: float | None = None,
    advisers: Advisers = NO_ADVISERS,
) -> Review:
    """Return the review of a pass's calls, from all evidence and the model's yes or no.

    Args:
        threshold: given if the model also selected the calls. The model is then asked about a call only if its answer
            can move the call's probability across this threshold.
    """
    calls = packet.routing.calls
    known = [call for call in calls if call.tool_name in catalogue]
    scores = await asyncio.to_thread(advisers.scores, known, packet, catalogue)
    scored = {call.call_id: score for call, score in zip(known, scores, strict=True)}
    reviews, usage, source = [], TokenUsage(), ConfidenceSource.CALIBRATED
    for call in calls:
        spec = catalogue.get(call.tool_name)
        if spec is None:
            reviews.append(CallReview.of_missing_tool(call))
            continue
        score = scored[call.call_id]
        evidence = {**call.evidence, **score.evidence}
        extremes = (-_MAX_YES_LOG_ODDS, _MAX_YES_LOG_ODDS)
        lowest, highest = (correctness_probability({**evidence, "yes": odds}) for odds in extremes)
        verdict = "the model was not asked"
        if threshold is None or lowest < threshold <= highest:
            answer = await yes_no_probabilities(model, packet.content.user_words, spec, call.params)
            usage += answer.usage
            evidence |= {"yes": round(log_odds(answer.by_word[YES]), DIGITS)}
            verdict = f"the model says {YES if evidence['yes'] >= 0 else NO}"
        probability = correctness_probability(evidence)
        reviews.append(
            CallReview(
                call_id=call.call_id,
                approved=probability >= _APPROVED,
                confidence=probability,
                confidence_source=source,
                evidence=evidence,
                reasoning="; ".join([verdict, *score.reasons]),
            )
        )
    return Review(reviews=tuple(reviews), confidence_source=source, decided_by="model", usage=usage)


def likelier_selection(
    chosen: Selection, proposal: Selection, packet: CognitionPacket, catalogue: Catalogue, advisers: Advisers
) -> Selection:
    """Return the more probable one of the model's selection and the proposal, without improbable calls. Blocking."""
    if proposal.action == "describe" or chosen.action == "clarify":
        return chosen
    if chosen.call_probability is not None:
        evidence = {"acts": round(log_odds(chosen.call_probability), DIGITS), "passed_over": 1.0}
        calls = tuple(call.changed(evidence=call.evidence | evidence) for call in proposal.calls)
        proposal = proposal.changed(calls=calls)
    probabilities = _probabilities(chosen, packet, catalogue, advisers)
    proposal_probability = min(_probabilities(proposal, packet, catalogue, advisers), default=0.0)
    rated = zip(chosen.calls, probabilities, strict=True)
    probable = [(call, probability) for call, probability in rated if probability >= _MIN_PROPOSED]
    lowest = min((probability for _, probability in probable), default=0.0)
    if proposal_probability > max(lowest, _MIN_PROPOSED):
        return proposal.replacing(chosen)
    if probable or not chosen.calls:
        return chosen.with_calls([call for call, _ in probable])
    return proposal.with_calls(()).replacing(chosen)


def _probabilities(
    selection: Selection, packet: CognitionPacket, catalogue: Catalogue, advisers: Advisers
) -> list[float]:
    """Return the probability of each call of a selection; 0 for an unknown tool."""
    facts = facts_of(packet, catalogue)
    known = [selected for selected in selection.calls if selected.tool_name in catalogue]
    calls = [facts.traced_call(catalogue[one.tool_name], one.params) for one in known]
    scores = iter(advisers.scores(calls, packet, catalogue))
    return [
        correctness_probability({**one.evidence, **next(scores).evidence}) if one.tool_name in catalogue else 0.0
        for one in selection.calls
    ]
