"""`python -m benchmarks.values DATA [--errors N]`: measure the exact match of arguments for the right tool.

No training uses these sets: Seal-Tools' test requests with one call, and separately those of held-out tools; BFCL's
simple requests, in which "" among the allowed values means that the argument may be missing; and our own held-out
catalogues. The comparison ignores case, spaces and punctuation, as in BFCL.
"""

import argparse
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.ranking.data import tool_spec
from benchmarks.selection.cases import public_sets
from benchmarks.selection.figures import same
from benchmarks.train.data import held_out, rows
from benchmarks.train.own import catalogues
from packetgate.reflex.values.filling import fill_parameters
from packetgate.tools.spec.tool_spec import ToolSpec


@dataclass(frozen=True)
class Case:
    """A request, its tool, and the allowed values of each parameter; "" allows a missing argument."""

    request: str
    tool: ToolSpec
    allowed: Mapping[str, list[Any]]


def main() -> None:
    """Run the benchmark from the command line."""
    parser = argparse.ArgumentParser(prog="benchmarks.values", description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--errors", type=int, default=0)
    args = parser.parse_args()
    sets = {
        "Seal-Tools test, one call": [*_sealtools(args.data)],
        "Seal-Tools test, one call, tools held out": [*_sealtools(args.data, only_held_out=True)],
        "BFCL simple": [*_bfcl(args.data, "simple_python")],
        "BFCL live simple": [*_bfcl(args.data, "live_simple")],
        "our own, catalogues held out": [*_own()],
    }
    print("| set | requests | exact match | ms a request |\n|---|--:|--:|--:|")
    wrong: list[str] = []
    for title, cases in sets.items():
        began = time.perf_counter()
        found = [fill_parameters(case.tool, case.request).params for case in cases]
        cost = (time.perf_counter() - began) / max(1, len(cases)) * 1000
        right = [_fits(params, case) for params, case in zip(found, cases, strict=True)]
        print(f"| {title} | {len(cases)} | {sum(right) / max(1, len(cases)):.3f} | {cost:.0f} |")
        misses = [(case, params) for case, params, good in zip(cases, found, right, strict=True) if not good]
        shown = misses[: args.errors]
        wrong += [f"{title}: {case.request}\n  {params}\n  {dict(case.allowed)}" for case, params in shown]
    print(*wrong, sep="\n")


def _sealtools(data: Path, *, only_held_out: bool = False) -> Iterator[Case]:
    tools = {
        row["id"]: tool_spec(row["name"], row["description"] or "", row["input_schema"])
        for row in rows(data / "sealtools" / "tools.jsonl")
    }
    for row in rows(data / "sealtools" / "test_in_domain.jsonl"):
        if len(row["calls"]) == 1 and (not only_held_out or held_out("sealtools", row["calls"][0]["tool"])):
            call = row["calls"][0]
            yield Case(row["query"], tools[call["tool"]], {name: [one] for name, one in call["arguments"].items()})


def _own() -> Iterator[Case]:
    for one in catalogues(held_out=True):
        for asked in one.requests:
            if asked.tool:
                yield Case(
                    asked.text, one.tools[asked.tool], {name: [value] for name, value in asked.arguments.items()}
                )


def _bfcl(data: Path, name: str) -> Iterator[Case]:
    for case in public_sets(data)[f"bfcl {name}"]():
        yield Case(case.query, case.tools[0].spec, case.expected[0].arguments or {})


def _fits(params: Mapping[str, Any], case: Case) -> bool:
    return params.keys() <= case.allowed.keys() and all(
        any(same(params[name], one) for one in allowed) if name in params else "" in allowed
        for name, allowed in case.allowed.items()
    )


if __name__ == "__main__":
    main()
