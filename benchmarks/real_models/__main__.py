"""Measure the calls of real language models, alone and with Packetgate, on public sets of requests and tools.

Each model gets each case twice: with plain tool calling, by its chat template or its server's `tools`, and through
Packetgate's selection and review. With Packetgate, a call runs without a question if it passes the gate. The benchmark
stores all answers, so that an interrupted run continues and a larger sample extends a smaller one. The answers of plain
tool calling stay valid when Packetgate's code changes.

Models have the names that PACKETGATE_LITE accepts. The sets are in the folder of PACKETGATE_DATA. When2Call labels only
tools, not arguments: there, a call is right if its name is right.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.command_line import add_data_option, command_parser, errors_in_one_line
from benchmarks.real_models.figures import beside, figures
from benchmarks.real_models.opening import by_one, open_model
from benchmarks.real_models.playing import WAYS, Played, Way, played
from benchmarks.real_models.readings import to_read
from benchmarks.results_kept import ROOT
from benchmarks.selection.cases import Case, drawn, public_sets
from packetgate.models.model import Model
from packetgate.state.errors import DecisionError, InputError

DECIDE = tuple(f"packetgate/{room}" for room in ("deciders", "models", "prompts", "tools"))
"""Folders whose code determines the result of a case."""
SETS = (
    "bfcl simple_python",
    "bfcl multiple",
    "bfcl live_simple",
    "bfcl live_multiple",
    "bfcl irrelevance",
    "bfcl live_irrelevance",
    "sealtools, tools held out",
    "when2call",
)


def main() -> None:
    """Run the benchmark from the command line, and reuse stored answers."""
    parser = command_parser("benchmarks.real_models", __doc__)
    parser.add_argument("models", nargs="+", help="such as llamacpp:/path/model.gguf?n_threads=1")
    add_data_option(parser)
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS, metavar="SET", help="; ".join(SETS))
    parser.add_argument("--ways", nargs="+", default=WAYS, choices=WAYS)
    parser.add_argument("--sample", type=int, default=60, help="number of cases of each set, drawn with a fixed seed")
    parser.add_argument("--keep", type=Path, default=Path("real_models"), help="folder of the stored answers")
    parser.add_argument("--read", type=Path, help="write the calls that ran and that two readers have not read yet")
    parser.add_argument("--json", action="store_true", help="print JSON, one line per metric")
    args = parser.parse_args()
    with errors_in_one_line(parser, OSError):
        if args.data is None:
            raise InputError("the folder of the public sets is missing: use --data, or set PACKETGATE_DATA")
        cases = {name: drawn(public_sets(args.data)[name](), args.sample) for name in args.sets}
        for model in args.models:
            asyncio.run(_measure(model, cases, args.ways, args.keep, args.read, as_json=args.json))


async def _measure(
    name: str,
    sets: Mapping[str, Sequence[Case]],
    ways: Sequence[Way],
    folder: Path,
    unread: Path | None,
    *,
    as_json: bool,
) -> None:
    model = await open_model(name)
    stem = model.name.removesuffix(".gguf")
    kept = {way: StoredAnswers(folder / f"{stem}-{'plain' if way == 'plain' else _commit()}.jsonl") for way in ways}
    for title, cases in sets.items():
        answers = [[await _answer(title, case, way, model, kept[way]) for way in ways] for case in cases]
        by_id = {case.id: case for case in cases}
        for at, way in enumerate(ways):
            rows = [each[at] for each in answers]
            if unread and way == "packetgate":
                with unread.open("a", encoding="utf-8") as file:
                    file.writelines(json.dumps(one) + "\n" for one in to_read(by_id, rows))
            for reviewed in (True, False) if way == "packetgate" else (False,):
                label = "packetgate, without review" if way == "packetgate" and not reviewed else way
                _show(model.name, title, label, figures(by_id, rows, reviewed=reviewed), as_json=as_json)
        if len(ways) == len(WAYS):
            _show(model.name, title, "packetgate to plain", beside(answers), as_json=as_json)


async def _answer(title: str, case: Case, way: Way, model: Model, kept: "StoredAnswers") -> Played:
    known = kept.rows.get((title, case.id, way))
    if known is None:
        try:
            known = await played(title, case, way, model, by_one(model))
        except DecisionError as error:
            print(f"{title} {case.id}, {way}: {error}", file=sys.stderr)
            known = Played(set=title, id=case.id, way=way)
        kept.add(known)
    return known


class StoredAnswers:
    """The stored answers of one model, in one file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        self.rows = {(row.set, row.id, row.way): row for row in map(Played.model_validate_json, lines)}

    def add(self, row: Played) -> None:
        """Store another answer."""
        self.rows[row.set, row.id, row.way] = row
        with self._path.open("a", encoding="utf-8") as file:
            file.write(row.model_dump_json() + "\n")


def _commit() -> str:
    """Return the last commit that changed code that decides."""
    asked = ["git", "log", "-1", "--format=%h", "--", *DECIDE]
    return subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def _show(model: str, title: str, way: str, found: Mapping[str, float | int | None], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"model": model, "set": title, "way": way, **found}), flush=True)
        return
    shown = ", ".join(
        f"{name.replace('_', ' ')} {value:.2f}" if isinstance(value, float) else f"{name.replace('_', ' ')} {value}"
        for name, value in found.items()
        if value is not None
    )
    print(f"{model}, {title}, {way}: {shown}", flush=True)


if __name__ == "__main__":
    main()
