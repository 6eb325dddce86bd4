"""Calibrating the judge's probability on the sources for choosing, which its encoder was not trained on."""

import json
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.selection.figures import auroc
from benchmarks.train.data import Source, sources
from deciders.judge.judge import WEIGHTS, load_encoder
from tools.ranking.bm25 import Lexical

SEED = 3
REQUESTS = 30
"""Taken of each source."""
FURTHER = 60
"""Ranks from whose second half wrong tools are drawn: of the field, and not the same tool again."""
RIDGE = 1e-2

Scored = list[tuple[float, bool]]


def calibrate(data: Path) -> None:
    """Fit scale and shift, print how they do on each source when it is left out, and write them."""
    rng = random.Random(SEED)
    file = WEIGHTS / "calibration.json"
    before = json.loads(file.read_text(encoding="utf-8"))
    scored = {one.name: _scored(one, rng, before) for one in sources(data, "choose") if one.queries}
    for left_out, found in scored.items():
        scale, shift = _fitted([pair for name, part in scored.items() if name != left_out for pair in part])
        likely = [(1 / (1 + np.exp(-(scale * score + shift))), right) for score, right in found]
        error = abs(sum(p for p, _ in likely) - sum(right for _, right in likely)) / len(likely)
        served = auroc([score for score, right in found if right], [score for score, right in found if not right])
        print(json.dumps({"left out": left_out, "auroc": served, "mean error": round(float(error), 3)}), flush=True)
    scale, shift = _fitted([pair for part in scored.values() for pair in part])
    file.write_text(json.dumps({"scale": round(scale, 4), "shift": round(shift, 4)}) + "\n", encoding="utf-8")
    print(file.read_text(encoding="utf-8").strip())


def _scored(source: Source, rng: random.Random, before: dict[str, float]) -> Scored:
    """Return the raw score of the likeliest of a few tools, and whether it will do; every second request lacks it."""
    ranking, known, found = Lexical(source.tools.values()), sorted(source.tools), []
    encoder = load_encoder(WEIGHTS)
    for number, query in enumerate(rng.sample([*source.queries], min(REQUESTS, len(source.queries)))):
        right = frozenset(name for group in query.wanted for name in group)
        ranked = [hit.name for hit in ranking.rank(query.text, FURTHER)]
        further = ranked[len(ranked) // 2 :]
        drawn = [*rng.sample(further, min(2, len(further))), *rng.sample(known, 3)]
        names = [name for name in dict.fromkeys(drawn) if name not in right]
        if number % 2:
            names += sorted(right & source.tools.keys())[:1]
        judged = encoder.judge(query.text, [source.tools[name] for name in names])
        best = max(judged, key=lambda one: one.fits)
        odds = float(np.log(best.fits / (1 - best.fits)))
        found.append(((odds - before["shift"]) / before["scale"], best.tool_name in right))
    return found


def _fitted(found: Scored) -> tuple[float, float]:
    shift, scale = logistic(np.array([[score] for score, _ in found]), [right for _, right in found])
    return scale, shift


def logistic(table: NDArray[np.float64], right: Sequence[bool]) -> list[float]:
    """Return (bias, weights) of a logistic regression, by Newton's method with a small ridge."""
    rows = np.hstack([np.ones((len(table), 1)), table])
    found = np.zeros(rows.shape[1])
    for _ in range(50):
        likely = 1 / (1 + np.exp(-rows @ found))
        slope = rows.T @ (np.array(right) - likely) - RIDGE * found
        curve = (rows * (likely * (1 - likely))[:, None]).T @ rows + RIDGE * np.eye(len(found))
        step = np.linalg.solve(curve, slope)
        found += step
        if np.abs(step).max() < 1e-6:
            break
    return [float(one) for one in found]
