"""How well tools are chosen and called without a language model, through the deciders of a turn.

Cases are JSON Lines: {id, query, tools: [{name, description, parameters}], expected: [{name, arguments: {parameter:
[values that will do]}}]}, `expected` empty where no tool serves; "" among the values: it may be left out. With `asks`
true, the request leaves out what the tool needs. Without --cases, the public sets of the data folder are read, which
PACKETGATE_DATA names.

A confidence is the review's, which is what the gate reads; a call for a request that no tool serves is a wrong one.
`right kind` judges tools without arguments: the right call, a question about what is missing, or nothing if no tool
serves. Of the calls of the right kind, `asked of wanted calls` do not pass the gate; of the calls that pass it, `wanted
of passed calls` are of the right kind.
"""

import argparse
import asyncio
import json
import os
import random
import sys
from pathlib import Path

from benchmarks.selection.cases import Case, public_sets, read_cases
from benchmarks.selection.figures import Figures, Outcome, summary
from benchmarks.selection.running import outcomes
from packetgate.deciders.choosing import reflex_deciders
from packetgate.state.errors import InputError

SEED = 11
LIVE = ("bfcl live_simple", "bfcl live_multiple", "bfcl live_irrelevance")

Measured = tuple[list[Case], list[Outcome]]


def main() -> None:
    """Read the cases, choose, print."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.selection", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=Path, nargs="+", default=[], help="files of your own cases")
    parser.add_argument("--data", type=Path, default=os.environ.get("PACKETGATE_DATA"), help="the public sets")
    parser.add_argument("--sets", nargs="+", default=[], help="only these of the public sets")
    parser.add_argument("--sample", type=int, default=0, help="only so many cases of each, drawn with a fixed seed")
    parser.add_argument("--keep", type=Path, help="write what became of each case here, as JSON Lines")
    parser.add_argument("--json", action="store_true", help="print JSON, one line a set")
    given = parser.parse_args()
    try:
        sets = _sets(given.cases, given.data, given.sets)
    except (InputError, OSError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        sys.exit(2)
    found = asyncio.run(_measure(sets, given.sample, as_json=given.json))
    if given.keep:
        kept = [json.dumps({"set": name, **one.model_dump()}) for name, (_, came) in found.items() for one in came]
        given.keep.write_text("\n".join(kept) + "\n", encoding="utf-8")


def _sets(files: list[Path], data: Path | None, only: list[str]) -> dict[str, list[Case]]:
    if files:
        return {path.stem: read_cases(path) for path in files}
    if data is None:
        raise InputError("name a file of cases, or the folder of the public sets with --data or PACKETGATE_DATA")
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
