"""Estimate whether a call is right: from the model's token probabilities, its yes or no, and the request's words.

`evidence.json` contains the weights. `python -m benchmarks.train.evidence` fits them.
"""

import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage
from langchain_core.messages import ToolCall as AgentCall

from packetgate.deciders.advice import Advisers
from packetgate.deciders.packets import facts_of
from packetgate.deciders.protocols import SelectedCall, Selection
from packetgate.models.decoding import WrittenCall
from packetgate.models.token_probabilities import with_probabilities
from packetgate.state.origins import OriginKind
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import ToolCall
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.learned import DIGITS, load_json, log_odds, logistic

EVIDENCE_FITTED = Path(__file__).with_name("evidence.json")
FROM_TOKENS = frozenset({"name", "arguments", "acts"})
KINDS = ("tokens yes", "tokens", "yes", "request")
_MIN_PROBABILITY = 1e-3
_GUESSED = 1.5  # log odds of a yes up to which a model may guess
MAX_LOG_ODDS = 6.0  # of one piece of evidence
_MIN_PROPOSED = 0.15  # lowest probability of a call that is proposed, or asked about
_NAMED = frozenset({OriginKind.USER, OriginKind.STRUCTURED, OriginKind.TEXT})
_MIN_FURTHER = 0.5  # the same after a result: small models call again although the request is served


class CallEvidence(NamedTuple):
    """Evidence for a call. Each weight in `evidence.json` has the name of its piece of evidence."""

    always: float = 1.0  # constant: its weight is the intercept
    judged: float = 0.0  # log odds of a scorer
    written: float = 0.0  # the model wrote the call; otherwise `name` and `arguments` are 0
    name: float = 0.0  # log odds of the tool's name
    arguments: float = 0.0  # log probability of all arguments
    yes: float = 0.0  # log odds of the prime model's yes
    clear: float = 0.0  # those beyond ±1.5, which small models rarely reach
    said: float = 0.0  # 1 for a yes whose probability is not known, -1 for such a no
    acts: float = 0.0  # log odds that the model calls a tool
    passed_over: float = 0.0  # the model made another call, or no call
    practised: float = 0.0  # a scorer would make this call, and it knows its tool well

    @classmethod
    def from_signals(cls, signals: Mapping[str, float]) -> "CallEvidence":
        """Return the evidence among the signals of a call, bounded to ±6."""
        yes = signals.get("yes", 0.0)
        signals = {**signals, "clear": yes - max(-_GUESSED, min(_GUESSED, yes))}
        bounded = {name: max(-MAX_LOG_ODDS, min(MAX_LOG_ODDS, value)) for name, value in signals.items()}
        return cls(**{name: value for name, value in bounded.items() if name in cls._fields})


class CallNeedEvidence(NamedTuple):
    """Evidence that a request needs a call."""

    always: float = 1.0  # constant: its weight is the intercept
    acts: float = 0.0  # log odds that the model calls a tool
    needed: float = 0.0  # log odds that some tool serves the request


class EvidenceWeights(NamedTuple):
    """The weights of all kinds of evidence."""

    calls: Mapping[str, CallEvidence]
    """Weights by the kind of a call's evidence: see `kind_of`."""
    acting: CallNeedEvidence


@cache
def load_weights() -> EvidenceWeights:
    """Return the shipped weights. Raise WeightsError if the file is missing or broken."""

    def weights(content: dict[str, Any]) -> EvidenceWeights:
        calls = {kind: CallEvidence(**content["calls"][kind]) for kind in KINDS}
        return EvidenceWeights(calls, CallNeedEvidence(**content["acting"]))

    return load_json(EVIDENCE_FITTED, weights)


def correctness_probability(evidence: Mapping[str, float]) -> float:
    """Return the probability that a call is right."""
    return logistic(CallEvidence.from_signals(evidence), load_weights().calls[kind_of(evidence)])


def min_probability(call: ToolCall, packet: CognitionPacket) -> float:
    """Return the probability below which a call is not worth a question.

    It is 0 for a call of a follow-up or of a later step with a value that the user or a result named, because these
    calls were not measured.
    """
    follows = bool(packet.history or packet.routing.past_calls)
    is_named = any(origin.kind in _NAMED for origin in call.provenance.values())
    return 0.0 if follows and is_named else _MIN_PROPOSED


def kind_of(evidence: Mapping[str, float]) -> str:
    """Return the kind of a call's evidence, one of `KINDS`: token probabilities, and a yes or no."""
    known = ["tokens"] if evidence.keys() & FROM_TOKENS else []
    return " ".join([*known, "yes"] if "yes" in evidence else known) or "request"


def needs_call(call_probability: float | None, tool_probability: float | None) -> float:
    """Return the probability that a request needs a call; 0 if either probability is not known.

    Args:
        call_probability: that the model calls a tool.
        tool_probability: that some tool serves the request.
    """
    if call_probability is None or tool_probability is None:
        return 0.0
    return logistic(
        CallNeedEvidence(acts=log_odds(call_probability), needed=log_odds(tool_probability)), load_weights().acting
    )


def evidence_from_tokens(call: WrittenCall, call_probability: float | None) -> dict[str, float]:
    """Return the evidence from a written call and its tokens, if their probabilities were measured."""
    logs = [math.log(max(_MIN_PROBABILITY, probability)) for probability in call.probabilities.values()]
    evidence = {"written": 1.0}
    if call_probability is not None:
        evidence["acts"] = log_odds(call_probability)
    if call.name_probability is not None:
        evidence["name"] = log_odds(call.name_probability)
    if logs:
        evidence["arguments"] = max(math.log(_MIN_PROBABILITY), sum(logs))
    return {name: round(value, DIGITS) for name, value in evidence.items()}


def odds_by_tokens(call: AgentCall, answer: AIMessage) -> float:
    """Return the log odds that a call loses by the `logprobs` of its answer: at most 0; 0 if they were not measured."""
    (written,) = with_probabilities([WrittenCall(call["name"], call["args"])], answer)
    if written.name_probability is None:
        return 0.0
    signals, weights = CallEvidence.from_signals(evidence_from_tokens(written, None)), load_weights().calls["tokens"]
    lost = weights.name * (signals.name - MAX_LOG_ODDS) + weights.arguments * signals.arguments
    return round(lost, DIGITS)


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
    rated = _rated(chosen, packet, catalogue, advisers)
    proposed = _rated(proposal, packet, catalogue, advisers)
    probable = [(call, probability) for call, probability, least in rated if probability >= least]
    lowest = min((probability for _, probability in probable), default=0.0)
    if proposed and min(probability - max(lowest, least) for _, probability, least in proposed) > 0:
        return proposal.replacing(chosen)
    if probable or not chosen.calls:
        return chosen.with_calls([call for call, _ in probable])
    if proposal.calls:
        return chosen.with_calls(()).changed(reasoning="no call is likely enough to be right")
    return proposal.replacing(chosen)


def _rated(
    selection: Selection, packet: CognitionPacket, catalogue: Catalogue, advisers: Advisers
) -> list[tuple[SelectedCall, float, float]]:
    """Return each call with its probability, and with the lowest probability that is worth proposing; 0 and 1 for
    unknown tools."""
    facts = facts_of(packet, catalogue)
    known = [selected for selected in selection.calls if selected.tool_name in catalogue]
    unknown = [(selected, 0.0, 1.0) for selected in selection.calls if selected.tool_name not in catalogue]
    calls = [facts.traced_call(catalogue[one.tool_name], one.params) for one in known]
    scores, further = advisers.scores(calls, packet, catalogue), _MIN_FURTHER if packet.calls else 0.0
    return unknown + [
        (
            selected,
            correctness_probability({**selected.evidence, **score.evidence}),
            max(further, min_probability(call, packet)),
        )
        for selected, call, score in zip(known, calls, scores, strict=True)
    ]
