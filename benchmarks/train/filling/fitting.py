"""Fit the trees: each parameter's candidates compete by softmax, and right candidates should win."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.train.filling.examples import Example
from benchmarks.train.trees import trees_of
from packetgate.reflex.meaning.space import Trees
from packetgate.reflex.values.candidates import Candidate, candidates
from packetgate.reflex.values.features import FeatureContext, Matrix
from packetgate.reflex.values.mentions import parse_request
from packetgate.reflex.values.parameters import Parameter, parameters_of

NOW = datetime(2026, 1, 15, 9)
SHOWN = 45
"""Maximum number of wrong candidates of a parameter in training."""
ROUNDS, LEAVES, RATE = 260, 20, 0.1


@dataclass(frozen=True)
class Group:
    """A parameter's candidates: their features, and which are right."""

    rows: Matrix
    right: NDArray[np.float64]
    weight: float


def groups(examples: Sequence[Example], rng: random.Random) -> list[Group]:
    """Return the groups for training: those with a right candidate."""
    found = []
    for example in examples:
        parameters, reading = parameters_of(example.tool), parse_request(example.request)
        scene = FeatureContext(reading, example.tool, parameters)
        for index, parameter in enumerate(parameters):
            given = candidates(reading, parameter, NOW)
            right = labels(example, parameter, given)
            if right is not None and right.any():
                keep = _shown(right, rng)
                rows = scene.rows(index, [one for one, kept in zip(given, keep, strict=True) if kept], len(given))
                found.append(Group(rows, right[keep], example.weight))
    return found


def _shown(right: NDArray[np.float64], rng: random.Random) -> NDArray[np.bool_]:
    keep = (right > 0) | (np.arange(len(right)) == 0)
    wrong = np.flatnonzero(~keep).tolist()
    keep[rng.sample(wrong, min(SHOWN, len(wrong)))] = True
    return np.asarray(keep, dtype=np.bool_)


def labels(example: Example, parameter: Parameter, found: Sequence[Candidate]) -> NDArray[np.float64] | None:
    """Return which candidates are right; None if this is unknown."""
    if example.spans is not None:
        return _by_words(example, parameter, found)
    wanted: Any = example.arguments
    for name in parameter.path:
        wanted = (wanted[:1] or [None])[0] if name == "[]" and isinstance(wanted, list) else _part(wanted, name)
    if wanted is None:
        return np.array([float(one.way == "none") for one in found])
    strict = np.array([float(one.way != "none" and same(one.value, wanted, strictly=True)) for one in found])
    return strict if strict.any() else np.array([float(one.way != "none" and same(one.value, wanted)) for one in found])


def _part(wanted: Any, name: str) -> Any:
    return wanted.get(name) if isinstance(wanted, dict) else None


def _by_words(example: Example, parameter: Parameter, found: Sequence[Candidate]) -> NDArray[np.float64] | None:
    spans = example.spans or {}
    name = parameter.path[0]
    if len(parameter.path) > 1 or name not in spans:
        return None
    span = spans[name]
    if span is None:
        return np.array([float(one.way == "none") for one in found])
    if parameter.type == "boolean":
        said = example.request[span[0] : span[1]].lower()
        wanted = not any(word in said.split() for word in ("no", "without", "don't", "not", "off"))
        return np.array([
            float(one.value is wanted and one.span is not None and span[0] <= one.span.start < span[1]) for one in found
        ])  # fmt: skip
    plain = {"written", "number", "choice", "list", "literal", "command", "each"} | (
        {"moment"} if parameter.time_format else set()
    )
    return np.array([
        float(one.way in plain and one.span is not None and _inner(one, example.request) == span) for one in found
    ])  # fmt: skip


def _inner(one: Candidate, request: str) -> tuple[int, int]:
    """Return the position of a candidate's words, without surrounding quotes."""
    assert one.span is not None
    start, end = one.span.start, one.span.end
    if one.span.kind in {"quoted", "code"}:
        start = request.find(one.span.text, start)
        end = start + len(one.span.text)
    return start, end


def same(found: Any, wanted: Any, *, strictly: bool = False) -> bool:
    """Whether two values are equal; unless `strict`, ignoring case, punctuation and the type of a number."""
    if isinstance(found, bool) or isinstance(wanted, bool):
        return found is wanted
    if isinstance(found, list) and isinstance(wanted, list):
        return len(found) == len(wanted) and all(
            same(a, b, strictly=strictly) for a, b in zip(found, wanted, strict=True)
        )
    numbers = [_number(one) if not strictly or isinstance(one, int | float) else None for one in (found, wanted)]
    if numbers[0] is not None and numbers[1] is not None:
        return abs(numbers[0] - numbers[1]) <= 1e-9 * max(1.0, abs(numbers[0]))
    if isinstance(found, str) and isinstance(wanted, str) and not strictly:
        return _squeezed(found) == _squeezed(wanted)
    return bool(found == wanted)


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _squeezed(text: str) -> str:
    return text.lower().translate(str.maketrans("", "", " ,./-_*^'\"`"))


def fit(learned: Sequence[Group], *, seed: int = 1, rounds: int = ROUNDS) -> Trees:
    """Return the trees."""
    import lightgbm

    sizes = [len(group.right) for group in learned]
    starts = np.cumsum([0, *sizes[:-1]])
    member = np.repeat(np.arange(len(sizes)), sizes)
    right = np.concatenate([group.right for group in learned])
    weight = np.repeat([group.weight for group in learned], sizes)

    def objective(scores: NDArray[np.float64], _: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        exponents = np.exp(scores - np.maximum.reduceat(scores, starts)[member])
        chance = exponents / np.add.reduceat(exponents, starts)[member]
        wanted = chance * right
        wanted /= np.maximum(np.add.reduceat(wanted, starts)[member], 1e-12)
        return (chance - wanted) * weight, np.maximum(chance * (1 - chance), 1e-3) * weight

    settings = {
        "objective": objective, "num_leaves": LEAVES, "learning_rate": RATE, "min_data_in_leaf": 40,
        "min_sum_hessian_in_leaf": 0.5, "lambda_l2": 2.0, "feature_fraction": 0.5, "seed": seed, "max_bin": 63,
        "num_threads": 1, "deterministic": True, "verbose": -1,
    }  # fmt: skip
    data = lightgbm.Dataset(np.concatenate([group.rows for group in learned]), right)
    return trees_of(lightgbm.train(settings, data, rounds).dump_model())
