"""Give evidence for any call, from the request and from the calls that `reflex` would select."""

from collections.abc import Mapping, Sequence
from typing import Any

from packetgate.deciders.advice import Score
from packetgate.deciders.protocols import Selection
from packetgate.reflex.calls import call_signals, objections_to, reflex_call_signals
from packetgate.reflex.signals import call_log_odds, is_known_builtin, reflex_call_probability
from packetgate.state.packet import CognitionPacket
from packetgate.state.printing import compact_json, shorten
from packetgate.state.routing import ToolCall
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.learned import DIGITS, log_odds
from packetgate.tools.text.values import find_words, fold_text

_RIVAL_CHARS = 300  # of the other call's arguments
_REASONS = {
    "same": "the rule-based decider selects the same call",
    "nothing": "the rule-based decider selects no tool",
    "invented": "an argument has no source in the request",
    "added": "an optional argument has no source in the request",
    "left": "a value in the request is unused",
}


def scores_of(
    calls: Sequence[ToolCall], packet: CognitionPacket, catalogue: Catalogue, reflex: Selection
) -> list[Score]:
    """Return the evidence for each call, with the reasons in words. Blocking."""
    scores = []
    for call in calls:
        evidence = evidence_from_request(call, packet, catalogue, reflex)
        known = [why for name, why in _REASONS.items() if evidence.get(name)]
        rivals = [one for one in reflex.calls if one.tool_name == call.tool_name] or [*reflex.calls]
        if rivals and not evidence["same"]:
            shown = shorten(compact_json(rivals[0].params), _RIVAL_CHARS)
            known.append(f"the rule-based decider would call {rivals[0].tool_name} with {shown}")
        scores.append(Score(evidence, (*known, *(why for _, why in objections_to(call, packet)))))
    return scores


def evidence_from_request(
    call: ToolCall, packet: CognitionPacket, catalogue: Catalogue, reflex: Selection
) -> dict[str, float]:
    """Return the evidence for a call from the request and the selection of `reflex`. Blocking."""
    signals = call_signals(call, packet, catalogue)
    same_tool = [other.params for other in reflex.calls if other.tool_name == call.tool_name]
    is_same = call.params in same_tool
    if is_same:
        odds = log_odds(reflex_call_probability(reflex_call_signals(call, packet, catalogue)[0]))
    else:
        odds = call_log_odds(signals)
    names = {other.tool_name for other in reflex.calls} | {*reflex.asked_argument[:1]}
    words = packet.content.user_words
    from_reflex = {
        "practised": float(is_same and is_known_builtin(catalogue[call.tool_name])),
        "judged": odds,
        "same": float(is_same or any(_are_equivalent(call.params, params, words) for params in same_tool)),
        "other": float(bool(names) and call.tool_name not in names),
        "nothing": float(reflex.action == "none"),
    }
    from_words = {name: value for name, value in signals._asdict().items() if name not in {"always", "words"} and value}
    return {name: round(value, DIGITS) for name, value in (from_words | from_reflex).items()}


def _are_equivalent(params: Mapping[str, Any], others: Mapping[str, Any], request: str) -> bool:
    """Return whether each value equals the other call's value, or is a longer text of the request that contains it."""

    def contains(text: Any, part: Any) -> bool:
        are_texts = isinstance(text, str) and isinstance(part, str)
        return are_texts and find_words(fold_text(text), fold_text(part)) >= 0

    return params.keys() == others.keys() and all(
        value == others[name] or (contains(value, others[name]) and contains(request, value))
        for name, value in params.items()
    )
