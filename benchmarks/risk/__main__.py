"""`python -m benchmarks.risk DATA`: leaves each server out, and each repository, trains without it, and judges it.

Two regimes: by the text alone, and with the annotations that the servers state, which are not trusted. Rows whose label
can be disputed are counted apart. Beside them, what the shipped weights make of kinds of tools kept out of training.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple
from unittest.mock import patch

import numpy as np

from benchmarks.train.risk.data import Example, catalogue, data_folder, labelled, own, weights_of
from benchmarks.train.risk.learning import calibrated, left_out_models, seen
from packetgate.state.routing import Risk
from packetgate.tools.risk import tool as judging
from packetgate.tools.risk.tool import RiskModel, ToolJudgement, judge_tool

GOALS = "goals: at most 0.5 % of writers taken for readers, at most 5 % of readers taken for more, each server the same"


class Judged(NamedTuple):
    """A tool and what was thought of it."""

    example: Example
    found: ToolJudgement

    @property
    def taken_for_read(self) -> bool:
        """Whether it was taken for one that only reads."""
        return self.found.apparent_risk is Risk.READ


def main() -> None:
    """Print all tables."""
    folder = data_folder(sys.argv[1:])
    examples = [*labelled(folder), *own(), *catalogue(folder)]
    features = seen(examples)
    tested = [one for one in examples if one.repository]
    by_server = left_out_models(examples, features, lambda one: one.server)
    by_repository = left_out_models(examples, features, lambda one: one.repository)
    print(f"{len(tested)} tools of {len(by_server)} servers; {GOALS}\n")
    ways: tuple[tuple[str, dict[str, RiskModel], Callable[[Example], str]], ...] = (
        ("each server left out", by_server, lambda one: one.server),
        ("each repository left out", by_repository, lambda one: one.repository),
    )
    for title, models, group in ways:
        for hinted in (False, True):
            judged = [Judged(one, _judged(one, models[group(one)], hinted=hinted)) for one in tested]
            _report(f"{title}, {'with the annotations stated' if hinted else 'by the text alone'}", judged)
    _thresholds(tested, by_server)
    _calibration([Judged(one, _judged(one, by_server[one.server], hinted=False)) for one in tested], by_server)
    kept_out = [Judged(one, judge_tool(one.tool)) for one in own("left_out")]
    _print_errors("kinds of tools kept out of training, in our own words", kept_out)


def _judged(one: Example, model: RiskModel, *, hinted: bool) -> ToolJudgement:
    with patch.object(judging, "risk_model", lambda: model):
        return judge_tool(one.tool, one.hints if hinted else None)


def _report(title: str, judged: Sequence[Judged]) -> None:
    print(f"## {title}\n")
    undisputed = [one for one in judged if not one.example.doubted]
    for name, rows in (("all rows", judged), ("without disputed rows", undisputed)):
        false_reads, false_alarms = _share(rows, _is_false_read, True), _share(rows, _is_false_alarm, False)
        print(
            f"{name}: writers taken for readers {false_reads:.2%} ({sum(map(_is_false_read, rows))}), "
            f"readers taken for more {false_alarms:.2%} ({sum(map(_is_false_alarm, rows))})"
        )
    print("\n| server | readers | taken for more | writers | taken for readers |\n|---|--:|--:|--:|--:|")
    for server in sorted({one.example.server for one in judged}):
        rows = [one for one in judged if one.example.server == server]
        counts = [
            sum(not one.example.does_more for one in rows),
            sum(map(_is_false_alarm, rows)),
            sum(one.example.does_more for one in rows),
            sum(map(_is_false_read, rows)),
        ]
        print(f"| {server} | {' | '.join(map(str, counts))} |")
    print()
    _print_errors("", judged)


def _print_errors(title: str, judged: Sequence[Judged]) -> None:
    if title:
        right = sum(one.taken_for_read != one.example.does_more for one in judged)
        print(f"## {title}: {right} of {len(judged)} are judged right\n")
    for wrong, what in ((_is_false_read, "taken for a reader"), (_is_false_alarm, "taken for more")):
        for one in filter(wrong, judged):
            doubted = " (disputed)" if one.example.doubted else ""
            print(f"- {what}{doubted}: {one.example.server} `{one.example.tool.name}`: {'; '.join(one.found.reasons)}")
    print()


def _is_false_read(one: Judged) -> bool:
    return one.example.does_more and one.taken_for_read


def _is_false_alarm(one: Judged) -> bool:
    return not one.example.does_more and not one.taken_for_read


def _share(judged: Sequence[Judged], wrong: Callable[[Judged], bool], does_more: bool) -> float:
    """Return the mean over servers of how many of their tools of that label are judged wrong."""
    shares = [
        float(np.mean([wrong(one) for one in rows]))
        for server in sorted({one.example.server for one in judged})
        if (rows := [one for one in judged if one.example.server == server and one.example.does_more is does_more])
    ]
    return float(np.mean(shares))


def _thresholds(tested: Sequence[Example], models: dict[str, RiskModel]) -> None:
    """Print what other thresholds would come to: for whoever trains anew, not to choose by."""
    print("## other thresholds, each server left out, by the text alone\n")
    print(
        "| threshold | taken for readers | taken for more | undisputed: for readers | for more |\n|--:|--:|--:|--:|--:|"
    )
    for threshold in (-2.0, -1.0, -0.5, -0.25, 0.0, 0.25, 0.5):
        judged = [
            Judged(one, _judged(one, replace(models[one.server], threshold=threshold), hinted=False)) for one in tested
        ]
        undisputed = [one for one in judged if not one.example.doubted]
        shares = (
            f"{_share(rows, wrong, does_more):.2%}"
            for rows in (judged, undisputed)
            for wrong, does_more in ((_is_false_read, True), (_is_false_alarm, False))
        )
        print(f"| {threshold} | {' | '.join(shares)} |")
    print()


def _calibration(judged: Sequence[Judged], models: dict[str, RiskModel]) -> None:
    """Print, by what the model says, what it came to; each server's probabilities are fitted on the others."""
    servers = np.array([one.example.server for one in judged])
    truth = np.array([float(one.example.does_more) for one in judged])
    importance = np.array(weights_of([one.example for one in judged]))
    features = seen([one.example for one in judged])
    scores = np.array([models[server].score(row) for server, row in zip(servers, features, strict=True)])
    said = np.zeros(len(judged))
    for server in sorted(models):
        rest = servers != server
        slope, offset = calibrated(scores[rest], truth[rest], importance[rest])
        said[~rest] = 1 / (1 + np.exp(-(slope * scores[~rest] + offset)))
    print("## probability that a tool does more than read, by its text\n\n| said | tools | was |\n|---|--:|--:|")
    edges = (0.0, 0.02, 0.1, 0.3, 0.7, 0.9, 0.98, 1.0001)
    for low, high in pairwise(edges):
        inside = (said >= low) & (said < high)
        if inside.any():
            print(f"| {low:.2f} to {min(high, 1):.2f} | {inside.sum()} | {truth[inside].mean():.2f} |")
    print(f"\nBrier score {float(np.mean((said - truth) ** 2)):.3f}\n")


if __name__ == "__main__":
    main()
