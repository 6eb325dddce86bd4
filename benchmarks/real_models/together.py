"""Merge the metrics of several sets, and label metrics and ways."""

from collections.abc import Mapping, Sequence
from typing import Any

WAYS = {
    "plain": "plain tool calling",
    "packetgate, without review": "Packetgate, without review",
    "packetgate": "Packetgate",
}
REAL = {
    "exact": "exact call",
    "wrong_ran": "wrong call that runs without approval",
    "right_of_those_that_ran": "right of those that run",
    "right_that_ran": "right calls that run",
}


def together(lines: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the metrics of several sets, weighted by their numbers of cases."""

    def total(name: str) -> int:
        return sum(line[name] for line in lines)

    return {
        "cases": total("cases"),
        "exact": total("right") / max(1, total("wanted")),
        "wrong_ran": (total("ran") - total("right_ran")) / max(1, total("cases")),
        "right_of_those_that_ran": total("right_ran") / total("ran") if total("ran") else None,
        "right_that_ran": total("right_ran") / total("right") if total("right") else None,
        "unknown": total("unknown"),
        "refused": total("refused"),
    }
