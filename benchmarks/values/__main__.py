"""`python -m benchmarks.values DATA [--errors N]`: exact match of the arguments, given the right tool.

Sets that are only reported: Seal-Tools' test requests with one call, and those of tools that no training saw; BFCL's
simple requests, where a value that may be left out has "" among those allowed. Strictly: equal values. Loosely: but for
case, spaces and punctuation, as BFCL compares, and numbers written as texts.
"""

import argparse
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.ranking.data import tool_spec
from benchmarks.selection.cases import as_json_schema
from benchmarks.train.data import held_out, rows
from deciders.values.filling import fill
from tools.spec.tool_spec import ToolSpec


@dataclass(frozen=True)
class Case:
    """A request, its tool, and the values allowed for each parameter; "" among them: it may be left out."""

    request: str
    tool: ToolSpec
    allowed: Mapping[str, list[Any]]


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(prog="benchmarks.values", description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--errors", type=int, default=0)
    given = parser.parse_args()
    sets = {
        "Seal-Tools test, one call": [*_sealtools(given.data)],
        "Seal-Tools test, one call, tools held out": [*_sealtools(given.data, only_held_out=True)],
        "BFCL simple": [*_bfcl(given.data, "simple_python")],
        "BFCL live simple": [*_bfcl(given.data, "live_simple")],
    }
    print("| set | requests | strictly | loosely | ms a request |\n|---|--:|--:|--:|--:|")
    wrong: list[str] = []
    for title, cases in sets.items():
        began = time.perf_counter()
        found = [fill(case.tool, case.request).params for case in cases]
        cost = (time.perf_counter() - began) / max(1, len(cases)) * 1000
        strict = sum(_fits(params, case, strictly=True) for params, case in zip(found, cases, strict=True))
        loose = [_fits(params, case, strictly=False) for params, case in zip(found, cases, strict=True)]
        count = max(1, len(cases))
        print(f"| {title} | {len(cases)} | {strict / count:.3f} | {sum(loose) / count:.3f} | {cost:.0f} |")
        misses = [(case, params) for case, params, good in zip(cases, found, loose, strict=True) if not good]
        wrong += [f"{title}: {case.request}\n  {params}\n  {dict(case.allowed)}" for case, params in misses][
            : given.errors
        ]
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


def _bfcl(data: Path, name: str) -> Iterator[Case]:
    folder = data / "bfcl_v4"
    answers = {row["id"]: row["ground_truth"][0] for row in rows(folder / "possible_answer" / f"{name}.jsonl")}
    for row in rows(folder / f"{name}.jsonl"):
        function = row["function"][0]
        said = "\n".join(one["content"] for turn in row["question"] for one in turn if one["role"] == "user")
        (allowed,) = answers[row["id"]].values()
        schema = as_json_schema(function["parameters"])
        yield Case(said, tool_spec(function["name"], function.get("description") or "", schema), allowed)


def _fits(params: Mapping[str, Any], case: Case, *, strictly: bool) -> bool:
    if params.keys() - case.allowed.keys():
        return False
    return all(
        any(_same(params[name], one, strictly) for one in allowed) if name in params else "" in allowed
        for name, allowed in case.allowed.items()
    )


def _same(found: Any, wanted: Any, strictly: bool) -> bool:
    if isinstance(found, bool) or isinstance(wanted, bool):
        return found is wanted
    if isinstance(found, dict) and isinstance(wanted, dict):
        options = {name: one if isinstance(one, list) else [one] for name, one in wanted.items()}
        return {*found} <= {*options} and all(
            any(_same(found[name], one, strictly) for one in allowed) if name in found else "" in allowed
            for name, allowed in options.items()
        )
    if isinstance(found, list) and isinstance(wanted, list):
        return len(found) == len(wanted) and all(_same(a, b, strictly) for a, b in zip(found, wanted, strict=True))
    if not strictly and (isinstance(found, int | float) or isinstance(wanted, int | float)):
        return _number(found) is not None and _number(found) == _number(wanted)
    if not strictly and isinstance(found, str) and isinstance(wanted, str):
        return _squeezed(found) == _squeezed(wanted)
    return bool(found == wanted)


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _squeezed(text: str) -> str:
    return re.sub(r"[ ,./\-_*^'\"]", "", text.lower())


if __name__ == "__main__":
    main()
