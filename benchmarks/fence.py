"""Measure the metrics that a restructuring must not make worse, store them, and compare two stored runs.

Each part runs another benchmark unchanged, without a language model. If a part cannot run, the benchmark prints the
reason. Separate runs can write their parts to the same file, which keeps the other parts of the same commit.

    python -m benchmarks.fence [PART ...] --out AFTER.json --data FOLDER --found FOLDER
    python -m benchmarks.fence --compare BEFORE.json AFTER.json

To measure an older checkout, copy only this file there.
"""

import argparse
import asyncio
import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
GATE = 0.7
CASES = 150
"""Cases of each set of `benchmarks.selection`, as in its stored results."""
PAIRS = 80
"""How many of AgentDojo's 949 pairs are played."""
Row = dict[str, float]
Rows = dict[str, Row]
Line = Mapping[str, Any]
Folders = Mapping[str, Path | None]
"""The data folders: `data` contains the public sets, `found` the inputs that failed in earlier versions."""


class CannotRunError(Exception):
    """A part cannot run; the message says why."""


def folder(folders: Folders, name: str) -> str:
    """Return the path of a folder. Raise CannotRunError if it is not given or does not exist."""
    path = folders[name]
    if path is None or not path.is_dir():
        raise CannotRunError(f"--{name} is {'not a folder: ' + str(path) if path else 'not given'}")
    return str(path)


def run(module: str, *words: str, data: str = "", statuses: Iterable[int] = (0,)) -> str:
    """Run a benchmark in its own process, and return its output. Raise CannotRunError if it fails."""
    environment = {name: value for name, value in os.environ.items() if name != "PACKETGATE_DATA"}
    environment |= {"PACKETGATE_DATA": data} if data else {}
    command = [sys.executable, "-m", f"benchmarks.{module}", *words]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in statuses:
        raise CannotRunError((done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1][:400])
    return done.stdout


def lines(module: str, *words: str, data: str = "") -> Iterator[Line]:
    """Run a benchmark and yield the JSON objects that it printed."""
    return map(json.loads, run(module, "--json", *words, data=data).splitlines())


def numbers(line: Line) -> Row:
    """Return a line's numbers by name."""
    return {name: value for name, value in line.items() if isinstance(value, int | float)}


def everyday(folders: Folders, words: Iterable[str] = ()) -> Rows:
    """Return the outcomes of plain requests on the built-in tools and on public servers, by request file and server."""
    rows: Rows = {}
    for file in sorted((ROOT / "benchmarks" / "everyday" / "requests").glob("*.jsonl")):
        printed = lines("everyday", "--requests", str(file), *words)
        rows |= {f"{file.stem}, {line['name']}": numbers(line) for line in printed}
    return rows


def selection(folders: Folders) -> Rows:
    """Return the metrics of selection without a model, by public set."""
    printed = lines("selection", "--sample", str(CASES), data=folder(folders, "data"))
    return {line["name"]: numbers(line) for line in printed}


def gate(folders: Folders) -> Rows:
    """Return the metrics of the gate, on our own requests and on public ones."""
    rows: Rows = {}
    for data in ("", folder(folders, "data")):
        for line in lines("gate", data=data):
            at_gate = next(point for point in line["thresholds"] if point["threshold"] == GATE)
            rows[f"{line['set']}, {line['selector']}"] = {
                "calibration_error": line["calibration_error"]["review"],
                **{name: at_gate[name] for name in ("coverage", "precision") if at_gate[name] is not None},
                "ended_well": sum(rightly for rightly, _ in line["outcomes"].values()),
                "passed_wrongly": line["outcomes"].get("passed", (0, 0))[1],
            }
    return rows


def found(folders: Folders) -> Rows:
    """Return how many of the inputs that failed in earlier versions pass."""
    text = run("found", folder(folders, "found"), data=folder(folders, "data"), statuses=(0, 1))
    counted = re.findall(r"^(\w+): (\d+) of (\d+) right$", text, re.MULTILINE)
    return {name: {"right": int(right), "of": int(count)} for name, right, count in counted}


def safety(folders: Folders) -> Rows:
    """Return the outcomes of a sample of AgentDojo's prompt injections, in the graph and in the middleware."""
    agents = ("--agent", "packetgate", "--agent", "middleware")
    return {
        line["name"]: numbers(line) for line in lines("safety", "--pairs", str(PAIRS), "--variant-pairs", "0", *agents)
    }


def ranking(folders: Folders) -> Rows:
    """Return the metrics of ranking, by public set, without the other rankers of `benchmarks.ranking`."""
    data = Path(folder(folders, "data"))
    from benchmarks.ranking.__main__ import measure as ranked
    from benchmarks.ranking.__main__ import packetgate
    from benchmarks.train.data import sources

    rows: Rows = {}
    for source in (one for use in ("mix", "report") for one in sources(data, use)):
        figures = ranked({"packetgate": packetgate([*source.tools.values()])}, source.queries)
        rows[source.name] = figures["packetgate"].summary()
    return rows


def crossing(folders: Folders) -> Rows:
    """Return how much code a turn with one read executes, counted as in `benchmarks.crossing`."""
    from benchmarks.crossing import SIDES, counted_turn

    rows: Rows = {}
    for side in SIDES:
        calls = asyncio.run(counted_turn(side)).calls
        named = {code: count for code, count in calls.items() if not code[1].endswith(">")}
        files = {file for file, *_ in named}
        rows[side] = {"functions": len(named), "calls": sum(named.values()), "files": len(files)}
    return rows


def overhead(folders: Folders) -> Rows:
    """Return a turn's cost, as graph and as middleware, relative to other graphs in the same run."""
    places = product(("no checkpoints", "in memory", "SQLite"), ("10", "100", "middleware, 10", "middleware, 100"))
    rows = [f"{where}, {tools} tools" for where, tools in places]
    printed = lines("overhead", *(word for row in rows for word in ("--only", row)))
    return {f"{line['name']}, beside {line['beside']}": numbers(line) for line in printed}


_PARTS: tuple[Callable[[Folders], Rows], ...] = (crossing, found, gate, overhead, ranking, selection, everyday, safety)
PARTS = {part.__name__: part for part in _PARTS} | {"builtin": partial(everyday, words=("--servers", "builtin"))}
MORE_IS_BETTER = {
    "found": "right",
    "gate": "coverage precision ended_well",
    "ranking": "recall@1 recall@5 recall@10 ndcg@10",
    "selection": "relevance_auroc right_kind wanted_of_passed_calls tool_accuracy exact_match "
    "asked_where_something_is_missing gate_precision gate_coverage",
    "builtin": "well",
    "everyday": "well",
    "safety": "tasks_done_off tasks_done_unflagged tasks_done_everything hostile_flagged",
}
LESS_IS_BETTER = {
    "crossing": "functions calls files",
    "gate": "calibration_error passed_wrongly",
    "overhead": "ratio",
    "selection": "called_where_none_serves asked_of_wanted_calls ece",
    "builtin": "wrong wrong_changed questions ece",
    "everyday": "wrong wrong_changed questions ece",
    "safety": "harmed_off harmed_unflagged attacks_off attacks_unflagged carried_off carried_unflagged "
    "questions_everything questions_remembered harmless_flagged",
}
"""The compared metrics. All other numbers are only stored."""
NOISE = {"crossing": 0.01, "overhead": 0.1}
"""Maps each part whose metrics vary between runs to the largest accepted relative difference."""


def signs(part: str) -> dict[str, int]:
    """Return the compared metrics of a part: 1 if more is better, -1 if less is better."""
    tables = ((MORE_IS_BETTER, 1), (LESS_IS_BETTER, -1))
    return {figure: sign for table, sign in tables for figure in table.get(part, "").split()}


def measure(names: Iterable[str], folders: Folders, out: Path | None) -> None:
    """Measure parts, and print and store each part when it is complete."""
    describe = ["git", "describe", "--always", "--dirty", "--abbrev=40"]
    commit = subprocess.check_output(describe, cwd=ROOT, text=True).strip()
    place = f"Python {platform.python_version()}, {platform.platform()}, {os.cpu_count()} cores"
    for name in names:
        started = time.monotonic()
        part: dict[str, Any] = {"machine": place}
        try:
            part["rows"] = PARTS[name](folders)
        except CannotRunError as error:
            part["cannot_run"] = str(error)
        part |= {"load": os.getloadavg()[0], "seconds": round(time.monotonic() - started)}
        print(f"{name} ({part['seconds']} s) {part.get('cannot_run', '')}", flush=True)
        for row, values in part.get("rows", {}).items():
            values_text = (f"{figure} {values[figure]:.4g}" for figure in signs(name) if figure in values)
            print(f"  {row}: {', '.join(values_text)}", flush=True)
        if out:  # read the file again, because another process may have added a part
            stored = json.loads(out.read_text()) if out.exists() else {}
            parts = (stored["parts"] if stored.get("commit") == commit else {}) | {name: part}
            out.write_text(json.dumps({"commit": commit, "parts": parts}, indent=1) + "\n")


def compare(before: Line, after: Line) -> bool:
    """Print the changed metrics, and return whether a metric got worse."""
    print(f"{before['commit'][:12]} -> {after['commit'][:12]}")
    fallen = same = 0
    for name in PARTS:
        old_part, new_part = (side["parts"].get(name, {"cannot_run": "not measured"}) for side in (before, after))
        if reasons := {part["cannot_run"] for part in (old_part, new_part) if "cannot_run" in part}:
            print(f"{name}: not compared: {'; '.join(sorted(reasons))}")
            continue
        for row, values in old_part["rows"].items():
            for figure, sign in ((figure, sign) for figure, sign in signs(name).items() if figure in values):
                old, new = values[figure], new_part["rows"].get(row, {}).get(figure)
                fell = new is None or (old - new) * sign > NOISE.get(name, 0) * abs(old)
                fallen, same = fallen + fell, same + (new == old)
                if new != old:
                    shown = "missing" if new is None else f"{new:.4g}"
                    print(f"{'FELL' if fell else '':5}{name:10}{row:50}{figure:26}{old:<10.4g}{shown}")
    print(f"{fallen} figures fell, {same} are the same")
    return bool(fallen)


def main(words: list[str] | None = None) -> None:
    """Run the command line; the exit status of a comparison is 1 if a metric got worse."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.fence", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"by default all: {', '.join(PARTS)}")
    parser.add_argument("--out", type=Path, help="store the metrics in this JSON file")
    parser.add_argument("--data", type=Path, default=os.environ.get("PACKETGATE_DATA"), help="the public sets")
    parser.add_argument("--found", type=Path, help="the inputs of `benchmarks.found`")
    parser.add_argument("--compare", type=Path, nargs=2, metavar=("BEFORE", "AFTER"), help="compare two stored runs")
    args = parser.parse_args(words)
    if args.compare:
        sys.exit(compare(*(json.loads(file.read_text()) for file in args.compare)))
    if unknown := [name for name in args.parts if name not in PARTS]:
        parser.error(f"unknown part {unknown[0]!r}: use {', '.join(PARTS)}")
    folders = {name: path and path.absolute() for name, path in (("data", args.data), ("found", args.found))}
    measure(args.parts or PARTS, folders, args.out)


if __name__ == "__main__":
    main()
