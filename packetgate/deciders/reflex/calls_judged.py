"""How probably any call is right, whoever made it: each of its values weighed against how the request can be read.

`calls_judged.json` holds the weights; benchmarks/train fits them on right calls and on such as models get wrong.
"""

import json
import math
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from packetgate.deciders.reflex.fit import Fit, fits_of
from packetgate.deciders.reflex.following import step_of
from packetgate.deciders.reflex.reading import parts_in
from packetgate.deciders.reflex.serving import log_odds, logistic
from packetgate.deciders.values.filling import TOLD
from packetgate.deciders.values.mentions import Span, read
from packetgate.state.origins import OriginKind
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import ToolCall
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.learned import json_of
from packetgate.tools.provenance.values import folded, leaves
from packetgate.tools.spec.tool_spec import ToolSpec

FITTED = Path(__file__).with_name("calls_judged.json")
LEAST = 1e-3
"""Probability below which nothing gets worse."""
MOST = 3
"""What is found more often than this makes nothing worse."""


class CallSignals(NamedTuple):
    """What speaks for a call and against it; each is weighed by the number of the same name."""

    always: float = 1.0
    share: float = 0.0
    """Log probability that its tool serves."""
    rival: float = 0.0
    """Share of the best other tool."""
    worst: float = 0.0
    """Log probability of the value that the request was read for least surely."""
    omitted: float = 0.0
    """Log probability that what is left out is to be left out."""
    unread: float = 0.0
    """Values that the user's words hold, and that the request was not read for."""
    invented: float = 0.0
    """Values that nobody named, of parameters that must be given."""
    added: float = 0.0
    """The same, of those that need not."""
    switched: float = 0.0
    """The same, where the value is true or false, or one of a list of choices."""
    left: float = 0.0
    """Files, addresses, numbers, names and quoted texts of the request that no value holds."""
    unexplained: float = 0.0
    """Share of the telling words that the tool does not know and that its arguments do not take."""
    words: float = 0.0
    """Log of how many words the request has."""


def call_signals(call: ToolCall, packet: CognitionPacket, catalogue: Catalogue) -> CallSignals:
    """Return what is seen of a call, beside the part of the request that it fits best. Blocking."""
    now = packet.header.created_at.astimezone()
    found = []
    for text in parts_in(step_of(packet)):
        fits = fits_of(text, catalogue, now, also=call.tool_name)
        fit = next(one for one in fits if one.spec.name == call.tool_name)
        found.append(_seen(call, text, fit, fits))
    return max(found)[1]


def judged(signals: CallSignals) -> float:
    """Return the log odds that a call is right, as its signals are weighed."""
    return log_odds(logistic(signals, load_weights()))


@cache
def load_weights() -> CallSignals:
    """Return the weights that are shipped.

    Raises:
        WeightsError: their file is missing or broken.
    """
    return json_of(FITTED, lambda held: CallSignals(**held))


def _seen(call: ToolCall, text: str, fit: Fit, fits: list[Fit]) -> tuple[float, CallSignals]:
    """Return how well a part of the request fits a call, and what is seen of the call beside it."""
    values, omitted = [], []
    known, counted = [*_read(call.params, fit)], dict.fromkeys(("unread", "invented", "added", "switched"), 0)
    for name, probability in known:
        if name in call.params:
            values.append(math.log(max(LEAST, probability)))
        else:
            omitted.append(math.log(max(LEAST, probability)))
    for name in call.params.keys() - {name for name, _ in known}:
        counted[_kind(name, call, fit.spec)] += 1
    rival = max((one.share for one in fits if one.spec is not fit.spec), default=0.0)
    share = math.log(max(LEAST, fit.share))
    seen = CallSignals(
        share=share,
        rival=rival,
        worst=min(values, default=0.0),
        omitted=max(math.log(LEAST), sum(omitted)),
        **{name: float(min(MOST, count)) for name, count in counted.items()},
        left=float(min(MOST, _left(text, call.params))),
        unexplained=fit.unexplained,
        words=fit.words,
    )
    return share + max(math.log(LEAST), sum(values)), seen


def _read(params: Mapping[str, Any], fit: Fit) -> Iterator[tuple[str, float]]:
    """Yield each parameter that the request was read for, with the probability of what the call gives it."""
    for name in {one.path[0]: None for filling in fit.fillings for one in filling.arguments}:
        found = [
            sure
            for filling in fit.fillings
            for one in filling.arguments
            if one.path == (name,) and (sure := one.probability_of(params.get(name))) is not None
        ]
        if found:
            yield name, max(found)


def _kind(name: str, call: ToolCall, spec: ToolSpec) -> str:
    origin, needed = call.provenance.get(name), name in spec.required
    if needed and call.params[name] in ("", [], {}):
        return "invented"
    if origin is None or origin.kind is not OriginKind.NOBODY:
        return "unread"
    if needed:
        return "invented"
    schema = spec.parameters.get(name, {})
    return "switched" if "enum" in schema or schema.get("type") == "boolean" else "added"


def _left(text: str, params: Mapping[str, Any]) -> int:
    """Return how many mentions of a part no value of the call holds, and no mention that one holds overlaps."""
    values = folded(json.dumps([str(leaf.value) for name, value in params.items() for leaf in leaves(value, name)]))
    spans = [span for span in read(text).mentions if span.kind in TOLD]
    held = [span for span in spans if any(one in values for one in _ways(span))]
    return sum(not any(one.first < span.last and span.first < one.last for one in held) for span in spans)


def _ways(span: Span) -> list[str]:
    return [folded(span.text), *([] if span.number is None else [f"{span.number:g}"])]
