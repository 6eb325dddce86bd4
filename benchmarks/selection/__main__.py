"""Measure selection and calls without a language model, with the deciders of a turn.

Cases are JSON Lines: {id, query, tools: [{name, description, parameters}], expected: [{name, arguments: {parameter:
[accepted values]}}]}. `expected` is empty if no tool fits; "" among the values means that the argument may be missing.
`asks` is true if the request lacks a value that the tool needs. Without --cases, the benchmark uses the public sets in
the folder of PACKETGATE_DATA.

The confidence is that of the review, which the gate reads. A call is wrong if no tool fits the request. `right kind`
judges tools, not arguments: the right tool, a question about a missing value, or no call if no tool fits. `asked of
wanted calls` is the share of calls of the right kind that do not pass the gate. `wanted of passed calls` is the share
of calls of the right kind among the calls that pass.
"""

import asyncio
import json
import random
from pathlib import Path

from benchmarks.command_line import add_data_option, command_parser, errors_in_one_line
from benchmarks.selection.cases import Case, public_sets, read_cases
from benchmarks.selection.figures import Figures, Outcome, summary
from benchmarks.selection.running import outcomes
from packetgate.deciders.choosing import reflex_deciders
from packetgate.state.errors import InputError

SEED = 11
LIVE = ("bfcl live_simple", "bfcl live_multiple", "bfcl live_irrelevance")

Measured = tuple[list[Case], list[Outcome]]


def main() -> None:
    """Run the benchmark from the command line."""
    parser = command_parser("benchmarks.selection", __doc__)
    parser.add_argument("--cases", type=Path, nargs="+", default=[], help="files of own cases")
    add_data_option(parser)
    parser.add_argument("--sets", nargs="+", default=[], help="only these public sets")
    parser.add_argument("--sample", type=int, default=0, help="number of cases of each set, drawn with a fixed seed")
    parser.add_argument("--keep", type=Path, help="file for the outcome of each case, as JSON Lines")
    parser.add_argument("--json", action="store_true", help="print JSON, one line per set")
    args = parser.parse_args()
    with errors_in_one_line(parser, OSError):
        sets = _sets(args.cases, args.data, args.sets)
    found = asyncio.run(_measure(sets, args.sample, as_json=args.json))
    if args.keep:
        kept = [json.dumps({"set": name, **one.model_dump()}) for name, (_, came) in found.items() for one in came]
        args.keep.write_text("\n".join(kept) + "\n", encoding="utf-8")


def _sets(files: list[Path], data: Path | None, only: list[str]) -> dict[str, list[Case]]:
    if files:
        return {path.stem: read_cases(path) for path in files}
    if data is None:
        raise InputError("use --cases, or name the folder of the public sets with --data or PACKETGATE_DATA")
    known = public_sets(Path(data))
    unknown = [name for name in only if name not in known]
    if unknown:
        raise InputError(f"no set is called {unknown[0]!r}; there are: {', '.join(known)}")
    return {name: read() for name, read in known.items() if not only or name in only}


async def _measure(sets: dict[str, list[Case]], sample: int, *, as_json: bool) -> dict[str, Measured]:
    deciders = reflex_deciders()
    found: dict[str, Measured] = {}
    for name, cases in sets.items():
        some = random.Random(SEED).sample(cases, sample) if 0 < sample < len(cases) else cases
        found[name] = (some, await outcomes(some, deciders))
        _show(name, summary(*found[name]), as_json=as_json)
    if all(name in found for name in LIVE):
        together = [found[name] for name in LIVE]
        pooled = summary([one for cases, _ in together for one in cases], [one for _, came in together for one in came])
        _show("bfcl live, all", pooled, as_json=as_json)
    return found


def _show(name: str, figures: Figures, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"name": name, **figures}), flush=True)
        return
    print(f"{name}: {figures['cases']:,} cases")
    for figure, value in figures.items():
        if value is not None and figure != "cases":
            print(f"  {figure.replace('_', ' '):34} {value:.3f}")


if __name__ == "__main__":
    main()
