"""How far a confidence can be believed: what was said, beside how often it was right."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt

BINS = 10


@dataclass(frozen=True)
class Bin:
    """The decisions whose confidence lies from `low` up to `high`; the last bin holds 1.0 as well."""

    low: float
    high: float
    count: int
    confidence: float
    """Their mean."""
    right: float
    """The share of them that was right, from 0 to 1."""


def reliability(decisions: Iterable[tuple[float, bool]]) -> list[Bin]:
    """Return the bins that hold any decisions, each a confidence and whether it was right; the least sure first."""
    placed: dict[int, list[tuple[float, bool]]] = {}
    for confidence, right in decisions:
        at = int(confidence * BINS + 1e-9)  # 0.7 * 10 falls short of 7
        placed.setdefault(min(at, BINS - 1), []).append((confidence, right))
    return [
        Bin(
            low=at / BINS,
            high=(at + 1) / BINS,
            count=len(held),
            confidence=sum(confidence for confidence, _ in held) / len(held),
            right=sum(right for _, right in held) / len(held),
        )
        for at, held in sorted(placed.items())
    ]


def calibration_error(bins: Sequence[Bin]) -> float:
    """Return how far confidence and correctness lie apart, on average (ECE); from 0 to 1, 0 is best."""
    decisions = sum(one.count for one in bins)
    return sum(one.count * abs(one.confidence - one.right) for one in bins) / decisions if decisions else 0.0


def auroc(right: Sequence[float], wrong: Sequence[float]) -> float | None:
    """Return how often what is right has the higher confidence, ties counting half; None without both kinds."""
    if not right or not wrong:
        return None
    return sum((one > other) + (one == other) / 2 for one in right for other in wrong) / (len(right) * len(wrong))


def interval(part: int, whole: int, z: float = 1.96) -> tuple[float, float]:
    """Return between which shares the true one lies with a probability of 95 % (Wilson), of at least one trial."""
    share, spread = part / whole, z * z / whole
    middle, half = share + spread / 2, z * sqrt(share * (1 - share) / whole + spread / whole / 4)
    return max(0.0, (middle - half) / (1 + spread)), min(1.0, (middle + half) / (1 + spread))
