"""Measure the gate: compare its confidence with correctness, and show the effect of the threshold.

Without DATA, the requests are our own. With DATA or PACKETGATE_DATA, they are a sample of BFCL. Packetgate routes
each request twice, with its own selector (reflex, or the models of PACKETGATE_LITE and PACKETGATE_PRIME) and with a
careless one before the same review. A call is right if the label names its tool, whatever its arguments. No call runs.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import get_args

from benchmarks.command_line import add_data_option, command_parser, errors_in_one_line
from benchmarks.gate.figures import THRESHOLD, Judge, judged, outcomes, sweep
from benchmarks.gate.runs import Run, Selector, measure, read_runs, write_runs
from benchmarks.gate.sets import bfcl, own_requests
from packetgate.lab.fitting import calibration_error, reliability

SHOWN = (0.0, 0.3, 0.5, 0.65, 0.7, 0.75, 0.9, 1.0)
"""The thresholds in the text output."""


def show(name: str, runs: Sequence[Run], *, as_json: bool) -> None:
    """Print the metrics."""
    for selector in get_args(Selector):
        chosen = [run for run in runs if run.selector == selector]
        if as_json:
            print(json.dumps({"set": name, "selector": selector, "requests": len(chosen), **_figures(chosen)}))
        else:
            print(f"gate, {name}, {selector} selector: {_needing(chosen)}")
            print("\n".join(_lines(chosen)))


def _needing(runs: Sequence[Run]) -> str:
    return f"{len(runs):,} requests, {sum(bool(run.wanted) for run in runs):,} of them need a tool"


def _figures(runs: Sequence[Run]) -> dict[str, object]:
    bins = {judge: reliability(judged(runs, judge)) for judge in get_args(Judge)}
    return {
        "confidence": {judge: [asdict(one) for one in held] for judge, held in bins.items()},
        "calibration_error": {judge: round(calibration_error(held), 4) for judge, held in bins.items()},
        "thresholds": [asdict(point) for point in sweep(runs)],
        "outcomes": outcomes(runs),
    }


def _lines(runs: Sequence[Run]) -> list[str]:
    lines = []
    for judge in get_args(Judge):
        bins = reliability(judged(runs, judge))
        lines.append(f"  {judge} confidence, off by {calibration_error(bins):.2f} on average")
        lines += [f"    {one.low:.1f} to {one.high:.1f}  {one.count:>5,} calls  {one.right:6.1%} right" for one in bins]
    for point in sweep(runs, thresholds=SHOWN):
        right = "" if point.precision is None else f", {point.precision:6.1%} of them right"
        gate = "  <- the gate" if point.threshold == THRESHOLD else ""
        lines.append(f"  at {point.threshold:.2f}  {point.coverage:6.1%} pass{right}{gate}")
    return lines + [
        f"  {outcome:8} {rightly:>5,} rightly  {wrongly:>5,} wrongly"
        for outcome, (rightly, wrongly) in outcomes(runs).items()
    ]


def main() -> None:
    """Run the benchmark from the command line."""
    parser = command_parser("benchmarks.gate", __doc__)
    add_data_option(parser, "data")
    parser.add_argument("--record", type=Path, metavar="FILE", help="route our own requests, and store the runs")
    parser.add_argument("--runs", type=Path, metavar="FILE", help="show stored runs, and route nothing")
    parser.add_argument("--json", action="store_true", help="print JSON, one line per selector")
    args = parser.parse_args()
    with errors_in_one_line(parser):
        if args.runs:
            name, runs = args.runs.name, read_runs(args.runs)
        elif args.data and not args.record:
            name, runs = "BFCL", asyncio.run(measure(bfcl(args.data)))
        else:
            name, runs = "our own requests", asyncio.run(measure(own_requests()))
        if args.record:
            write_runs(args.record, runs)
    show(name, runs, as_json=args.json)


if __name__ == "__main__":
    main()
