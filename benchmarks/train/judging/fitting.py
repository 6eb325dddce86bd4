"""Fit the weights of the signals that a tool fits, and the confidence of a call, on sources without other training.

Regularisation keeps the weights near `PRIOR`, which is a guess, so that rare signals do not move them far.
"""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from benchmarks.selection.figures import auroc, same
from benchmarks.train.data import Source, sources
from benchmarks.train.filling.examples import sealtools
from benchmarks.train.own import catalogues
from packetgate.lab.fitting import calibration_error, reliability
from packetgate.ranking.bm25 import Lexical
from packetgate.reflex.calls import argument_probabilities, log_probability
from packetgate.reflex.fit import MIN_TOOL_PROBABILITY, Fit, best_fits
from packetgate.reflex.judge.calls import right_log_odds
from packetgate.reflex.signals import (
    SIGNALS_FITTED,
    ReflexCallSignals,
    SignalWeights,
    ToolSignals,
    reflex_call_probability,
    serving_probabilities,
)
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.text.reading import parts_in

SEED = 3
NOW = datetime(2026, 5, 6, 9, tzinfo=UTC)
REQUESTS = 100
"""Number of requests of each public source."""
BESIDE = 15
"""Number of other tools per request."""
FURTHER = 60
"""Number of nearest ranks. Half of the other tools come from the second half, where only the subject is similar."""
OWN_COUNT = {"own builtin_mixed": 3, "own builtin_long": 3, "own builtin_typed": 3}
"""Sources with a higher weight."""
PULL = 0.35
"""Strength of the regularisation of the weights towards their prior, in requests."""
AT_MOST = {"advice": -5.0, "below": -2.5, "otherwise": -2.0}
"""Signals against a tool, with the maximum of their weight, which holds even for rare signals."""
PRIOR = SignalWeights(
    ToolSignals(
        always=-2.5,
        judged=0.8,
        near=2,
        known=2.5,
        named=2,
        place=0.7,
        verb=0.5,
        outright=5,
        path=1.5,
        implied=2,
        answers=0.5,
        practised=0.5,
        below=-4,
        otherwise=-1,
        lacking=-1,
        certain=0.3,
        left=-1,
        advice=-5,
    ),
    ReflexCallSignals(always=0, share=0.3, arguments=1, left=-1, spare=-0.5, unexplained=-1),
)


@dataclass(frozen=True)
class Asked:
    """A request, its candidates' signals, and the candidates that fit (empty if none)."""

    source: str
    request: str
    signals: tuple[ToolSignals, ...]
    right: tuple[int, ...]
    best: Fit | None = None
    """The most probable call."""
    exact: bool | None = None
    """Whether this call and its arguments are right; None if the right arguments are unknown."""

    def inputs(self, fitted: SignalWeights) -> ReflexCallSignals:
        """Return the inputs of the probability that the most probable call is right."""
        assert self.best is not None
        filling = self.best.fillings[0]
        likely = replace(self.best, probability=max(serving_probabilities(self.signals, fitted)))
        arguments = log_probability(argument_probabilities(filling.params, filling))
        signals = likely.call_signals(arguments, len(filling.params), int(self.best.signals.left))
        return signals._replace(right=right_log_odds(self.request, self.best.spec, filling.params))

    def is_called(self, fitted: SignalWeights) -> bool:
        """Whether the most probable call would run, and the labels determine whether it is right."""
        return self.exact is not None and sum(serving_probabilities(self.signals, fitted)) >= MIN_TOOL_PROBABILITY


def fit(data: Path) -> None:
    """Print the metrics of each source when left out, and write the weights fitted to all sources."""
    asked = [*_asked(data)]
    for left_out in dict.fromkeys(one.source for one in asked):
        fitted = _fitted([one for one in asked if one.source != left_out])
        tested = [one for one in asked if one.source == left_out]
        print(json.dumps({"left out": left_out, "requests": len(tested), **_figures(tested, fitted)}), flush=True)
    fitted = _fitted(asked)
    print(json.dumps({"all": len(asked), **_figures(asked, fitted)}))
    kept = {
        part: {name: round(value, 3) for name, value in one._asdict().items()} for part, one in fitted._asdict().items()
    }
    SIGNALS_FITTED.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")


def _asked(data: Path) -> Iterator[Asked]:
    rng = random.Random(SEED)
    for source in sources(data, "choose"):
        yield from _of_source(source, rng)
    for one in catalogues(held_out=True):
        known = Catalogue(one.tools.values())
        for request in one.requests:
            right = frozenset({request.tool} if request.tool else ())
            yield _one(f"own {one.name}", request.text, known, right, request.arguments)
    calls = [one for one in sealtools(data, held=True) if one.weight == 1]
    tools = {one.tool.name: one.tool for one in calls}
    for call in rng.sample(calls, min(REQUESTS, len(calls))):
        beside = rng.sample([spec for name, spec in tools.items() if name != call.tool.name], 4)
        known = Catalogue([call.tool, *beside])
        yield _one("sealtools, tools held out", call.request, known, frozenset({call.tool.name}), call.arguments)


def _of_source(source: Source, rng: random.Random) -> Iterator[Asked]:
    """Yield a sample of a source's requests. Every second request lacks its right tool."""
    lexical, names = Lexical(source.tools.values()), sorted(source.tools)
    for number, query in enumerate(rng.sample([*source.queries], min(REQUESTS, len(source.queries)))):
        right = frozenset(name for group in query.wanted for name in group)
        further = [hit.name for hit in lexical.rank(query.text, FURTHER)][FURTHER // 2 :]
        drawn = [*rng.sample(further, min(BESIDE // 2, len(further))), *rng.sample(names, min(BESIDE, len(names)))]
        beside = [name for name in dict.fromkeys(drawn) if name not in right][:BESIDE]
        held = [*beside, *(sorted(right & source.tools.keys())[:1] if number % 2 else [])]
        yield _one(source.name, query.text, Catalogue(source.tools[name] for name in held), right)


def _one(source: str, text: str, known: Catalogue, right: frozenset[str], arguments: Any = None) -> Asked:
    part = max(parts_in(text), key=len)
    fits = best_fits(part, known, NOW)
    best = fits[0] if fits else None
    return Asked(
        source,
        text,
        tuple(one.signals for one in fits),
        tuple(at for at, one in enumerate(fits) if one.spec.name in right),
        best,
        None if arguments is None or best is None or best.missing else _is_exact(best, right, arguments),
    )


def _is_exact(best: Fit, right: frozenset[str], arguments: Any) -> bool:
    return (
        best.spec.name in right and len(best.fillings) == 1 and same(_plain(best.fillings[0].params), _plain(arguments))
    )


def _plain(value: Any) -> Any:
    """Return a value without words that do not change its meaning: `the notes folder` means `notes`."""
    if isinstance(value, str):
        return " ".join(word for word in value.split() if word.lower() not in _IDLE) or value
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list) else value


_IDLE = frozenset("the a an my our your this that file folder directory document".split())


def _weights(asked: Sequence[Asked]) -> list[float]:
    """Return the weight of each request: equal for all sources, higher for the built-in tools."""
    sizes = {name: sum(one.source == name for one in asked) for name in {one.source for one in asked}}
    return [OWN_COUNT.get(one.source, 1) * len(asked) / len(sizes) / sizes[one.source] for one in asked]


def _fitted(asked: Sequence[Asked]) -> SignalWeights:
    bounds = [(None, AT_MOST.get(name)) for name in ToolSignals._fields]
    serving = _least(_of_serving(asked), np.array(PRIOR.serving), bounds)
    fitted = PRIOR._replace(serving=ToolSignals(*serving))
    sureness = _least(_of_sureness(asked, fitted), np.array(PRIOR.sureness), [(None, None)] * len(PRIOR.sureness))
    return fitted._replace(sureness=ReflexCallSignals(*sureness))


def _least(loss: Any, prior: NDArray[np.float64], bounds: Sequence[tuple[float | None, float | None]]) -> list[float]:
    """Return the weights that minimise the loss, regularised towards `prior` and within bounds."""

    def whole(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        value, slope = loss(weights)
        away = weights - prior
        return value + PULL * float(away @ away), slope + 2 * PULL * away

    return [float(one) for one in minimize(whole, prior, jac=True, method="L-BFGS-B", bounds=bounds).x]


def _of_serving(asked: Sequence[Asked]) -> Any:
    """Return the loss of the choice: for each request, the negative log of the right choice's probability."""
    rows = [(np.array(one.signals), one.right, share) for one, share in zip(asked, _weights(asked), strict=True)]
    rows = [(table, right, share) for table, right, share in rows if len(table)]

    def loss(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        value, slope = 0.0, np.zeros_like(weights)
        for table, right, share in rows:
            scores = np.append(table @ weights, 0.0)
            powers = np.exp(scores - scores.max())
            likely = powers / powers.sum()
            wanted = np.zeros_like(likely)
            places = list(right) or [-1]
            wanted[places] = likely[places] / likely[places].sum()
            value -= share * float(np.log(likely[places].sum()))
            slope += share * table.T @ (likely - wanted)[:-1]
        return value, slope

    return loss


def _of_sureness(asked: Sequence[Asked], fitted: SignalWeights) -> Any:
    """Return the loss of the probability that calls are right, for the calls that would run."""
    pairs = [(one, share) for one, share in zip(asked, _weights(asked), strict=True) if one.is_called(fitted)]
    table = np.array([one.inputs(fitted) for one, _ in pairs])
    right, counts = np.array([one.exact for one, _ in pairs]), np.array([share for _, share in pairs])

    def loss(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        scores = table @ weights
        likely = 1 / (1 + np.exp(-scores))
        value = float((counts * (np.logaddexp(0, scores) - right * scores)).sum())
        return value, table.T @ (counts * (likely - right))

    return loss


def _figures(asked: Sequence[Asked], fitted: SignalWeights) -> dict[str, Any]:
    likely = [sum(serving_probabilities(one.signals, fitted)) for one in asked]
    needed = [value for value, one in zip(likely, asked, strict=True) if one.right]
    unneeded = [value for value, one in zip(likely, asked, strict=True) if not one.right]
    first = [_first(one, fitted) in one.right for one in asked if one.right]
    surely = [
        (reflex_call_probability(one.inputs(fitted), fitted), bool(one.exact)) for one in asked if one.is_called(fitted)
    ]
    passed = [right for value, right in surely if value >= 0.7]
    return {
        "auroc": _rounded(auroc(needed, unneeded)),
        "declined wrongly": _rounded(float(np.mean([value < 0.5 for value in needed])) if needed else None),
        "called wrongly": _rounded(float(np.mean([value >= 0.5 for value in unneeded])) if unneeded else None),
        "the right one first": _rounded(float(np.mean(first)) if first else None),
        "exact": _rounded(float(np.mean([right for _, right in surely])) if surely else None),
        "passed": len(passed),
        "of those right": _rounded(float(np.mean(passed)) if passed else None),
        "ece": _rounded(calibration_error(reliability(surely)) if surely else None),
    }


def _first(one: Asked, fitted: SignalWeights) -> int:
    return int(np.argmax(serving_probabilities(one.signals, fitted))) if one.signals else -1


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
