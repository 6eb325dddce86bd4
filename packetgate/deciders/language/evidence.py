"""What tells how probably a call that a model chose is right, and what each piece of it counts."""

import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from packetgate.deciders.protocols import Selection
from packetgate.deciders.reflex.calls_judged import call_signals, judged
from packetgate.deciders.reflex.fit import fits_of, needed
from packetgate.deciders.reflex.following import step_of
from packetgate.deciders.reflex.practice import is_practised
from packetgate.deciders.reflex.reading import parts_in
from packetgate.deciders.reflex.review import told_of
from packetgate.deciders.reflex.serving import log_odds, logistic, sure
from packetgate.models.calling import WrittenCall
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import ToolCall
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.learned import DIGITS, json_of
from packetgate.tools.provenance.values import find, folded

FITTED = Path(__file__).with_name("evidence.json")
LEAST = 1e-3
"""Probability below which nothing gets worse."""
MOST = 3.0
"""Log odds beyond which a piece of evidence counts no more: none is as sure as it says."""


class Evidence(NamedTuple):
    """What speaks for a call and against it; each is weighed by the number of the same name."""

    always: float = 1.0
    same: float = 0.0
    """The reflexes would make this very call, or one that takes fewer words of the request for the same values."""
    read: float = 0.0
    """Log odds that it is right, as they say of a call that they would make."""
    judged: float = 0.0
    """The same of any other call, as it is judged by how the request can be read."""
    written: float = 0.0
    """The model wrote it; what follows is 0 of a call that it did not."""
    name: float = 0.0
    """Log odds of the tool's name, among all names."""
    arguments: float = 0.0
    """Log probability of all arguments as the model wrote them."""
    yes: float = 0.0
    """Log odds of a yes of the prime model."""
    acts: float = 0.0
    """Log odds that the model that was offered the tools calls any."""
    passed_over: float = 0.0
    """The model made another call, or none."""
    practised: float = 0.0
    """The reflexes would make it, of a tool whose requests they have practised."""

    @classmethod
    def of(cls, known: Mapping[str, float]) -> "Evidence":
        """Return what is weighed of all that is known of a call."""
        return cls(**{name: max(-MOST, min(MOST, value)) for name, value in known.items() if name in cls._fields})


def written_evidence(call: WrittenCall, acts: float | None) -> dict[str, float]:
    """Return what the probabilities of a selection's own tokens tell of a call; nothing where they are not known."""
    if call.name_probability is None and acts is None:
        return {}
    values = [max(LEAST, one) for one in call.probabilities.values()]
    found = {
        "written": 1.0,
        "acts": None if acts is None else log_odds(acts),
        "name": None if call.name_probability is None else log_odds(call.name_probability),
        "arguments": max(math.log(LEAST), sum(map(math.log, values))) if values else None,
    }
    return {name: round(value, DIGITS) for name, value in found.items() if value is not None}


def read_evidence(call: ToolCall, packet: CognitionPacket, catalogue: Catalogue, own: Selection) -> dict[str, float]:
    """Return what the request says of a call, as it is read without a model, with the signals that it is judged by.

    Blocking.

    Args:
        own: what the reflexes would choose themselves.
    """
    seen = call_signals(call, packet, catalogue)
    wanted = [one.params for one in own.calls if one.tool_name == call.tool_name]
    made = call.params in wanted
    same = made or any(_agree(call.params, params, packet.content.user_words) for params in wanted)
    sure_of = log_odds(sure(told_of(call, packet, catalogue)[0])) if made else judged(seen)
    names = {one.tool_name for one in own.calls} | {*own.asks_for[:1]}
    practised = made and is_practised(catalogue[call.tool_name])
    found = {
        "practised": float(practised),
        "read" if made else "judged": sure_of,
        "same": float(same),
        "other": float(bool(names) and call.tool_name not in names),
        "nothing": float(own.action == "none"),
    }
    signals = {name: value for name, value in seen._asdict().items() if name not in {"always", "words"} and value}
    return {name: round(value, DIGITS) for name, value in (signals | found).items()}


def _agree(params: Mapping[str, Any], others: Mapping[str, Any], request: str) -> bool:
    """Whether values are those of another call, or texts of the request that those are a part of."""
    said = folded(request)

    def holds(value: Any, other: Any) -> bool:
        if value == other or not (isinstance(value, str) and isinstance(other, str)):
            return bool(value == other)
        return find(folded(value), folded(other)) >= 0 and find(said, folded(value)) >= 0

    return params.keys() == others.keys() and all(holds(value, others[name]) for name, value in params.items())


class Acting(NamedTuple):
    """What tells whether a request takes a call."""

    always: float = 1.0
    acts: float = 0.0
    needed: float = 0.0


class Weights(NamedTuple):
    """What each piece of evidence counts."""

    checked: Evidence
    """Where the prime model was asked."""
    unchecked: Evidence
    """Where it was not, or not yet."""
    acting: Acting


def right(evidence: Mapping[str, float]) -> float:
    """Return the probability that a call is right, rounded."""
    fitted = load_weights()
    return logistic(Evidence.of(evidence), fitted.checked if "yes" in evidence else fitted.unchecked)


def takes_call(acts: float, serves: float) -> float:
    """Return the probability that a request takes a call, rounded.

    Args:
        acts: Probability that the model calls.
        serves: Probability that some tool serves, as the reflexes read the request.
    """
    return logistic(Acting(acts=log_odds(acts), needed=log_odds(serves)), load_weights().acting)


@cache
def load_weights() -> Weights:
    """Return the weights that are shipped.

    Raises:
        WeightsError: their file is missing or broken.
    """
    return json_of(
        FITTED,
        lambda held: Weights(Evidence(**held["checked"]), Evidence(**held["unchecked"]), Acting(**held["acting"])),
    )


def serves(packet: CognitionPacket, catalogue: Catalogue) -> float:
    """Return the probability that some tool serves a part of the step, as the reflexes read it. Blocking."""
    now = packet.header.created_at.astimezone()
    return max(needed(fits_of(part, catalogue, now)) for part in parts_in(step_of(packet)))
