"""How plain everyday requests end, on the built-in tools and on six public MCP servers, for real.

Without a model, or with one: through Packetgate, or by plain tool calling (`--plain`), where every call runs.

A request is said to a new session of the real graph, in a world put back to how it was: a folder under git, a database,
a memory, a site on loopback. Writes and commands are switched on, and a person approves of every call that is put to
them. Then the world and the last answer are compared with what the request expects, and it ended

- well, when everything expected holds, and nothing else has changed. Where nothing fits the request, nothing else can
  be expected than that no call runs.
- asked, when it ends in a question in words though none was expected, and nothing has changed otherwise than expected;
  or when every call of the last turn was put to the person as doubtful, its review below the threshold: who knows what
  they want could have refused. Asking back is well only where the request expects it.
- declined, when no call ran in the last turn, nothing has changed otherwise than expected, and it does not ask.
- wrong in all other cases: a call ran, and something expected does not hold (the call failed, or its answer is shown
  and is not what was wanted), or something has changed otherwise than expected, whoever approved of it.

A confidence is believed as far as calls that ran at it belong to requests that ended well.
"""

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, nullcontext
from itertools import groupby
from pathlib import Path
from typing import Any, TextIO

from benchmarks.command_line import command_parser, errors_in_one_line
from benchmarks.everyday.asked import SERVERS, Asked, read_asked
from benchmarks.everyday.company import opened
from benchmarks.everyday.figures import GOALS, OUTCOMES, explained, figures
from benchmarks.everyday.judging import Moment, Verdict, judged, now
from benchmarks.everyday.plain import played_plainly
from benchmarks.everyday.playing import played
from benchmarks.everyday.world import World, served_site
from benchmarks.real_models.opening import by_one, open_model
from benchmarks.selection.cases import drawn
from packetgate.deciders.choosing import reflex_deciders


async def verdicts(requests: Sequence[Asked], name: str = "", *, plain: bool = False) -> AsyncGenerator[Verdict]:
    """Play the requests, those in the same company of servers after each other, and yield what came of each.

    Args:
        name: of a model, as in PACKETGATE_LITE; empty: none.
        plain: by plain tool calling.

    Raises:
        InputError: a server does not start, or there is no such model.
    """
    model = await open_model(name) if name else None
    deciders = by_one(model) if model else reflex_deciders()
    by_company = groupby(sorted(requests, key=lambda one: one.company), key=lambda one: one.company)
    with served_site() as site, tempfile.TemporaryDirectory(prefix="everyday-") as place:
        world = World(Path(place), site)
        for number, (names, together) in enumerate(by_company):
            home = Path(place) / f"home-{number}"
            home.mkdir()
            async with opened(names, world, home, deciders) as company:
                for asked in together:
                    await asyncio.to_thread(world.reset)
                    start = now()
                    if plain and model:
                        told = await played_plainly(company.hub, model, asked, site)
                    else:
                        async with company.sessions() as sessions:
                            told = await played(sessions, asked, site)
                    yield await asyncio.to_thread(judged, asked, told, world, Moment(start, now()))


async def measure(
    requests: Sequence[Asked], explain: TextIO | None, name: str = "", *, plain: bool = False
) -> list[Verdict]:
    """Play the requests; what came of each is written as soon as it is known.

    Raises:
        InputError: a server does not start, or there is no such model.
    """
    found: list[Verdict] = []
    async with aclosing(verdicts(requests, name, plain=plain)) as told:
        async for one in told:
            found.append(one)
            if explain:
                print(json.dumps(explained(one), ensure_ascii=False), file=explain, flush=True)
            print(f"{len(found)} of {len(requests)}", end="\r", file=sys.stderr, flush=True)
    return found


def show(lines: Sequence[dict[str, Any]]) -> None:
    """Print the figures for people."""
    print(f"{'':12}{'requests':>9}" + "".join(f"{name:>16}" for name in OUTCOMES) + f"{'questions':>11}")
    for line in lines:
        shares = "".join(f"{_share(line[name], line['requests']):>16}" for name in OUTCOMES)
        print(f"{line['name']:12}{line['requests']:>9}{shares}{line['questions']:>11}")
    whole = lines[-1]
    changed, failed = whole["wrong_changed"], whole["wrong_failed"]
    print(f"\nof those that ended well, {whole['picked']} by the first of the commands that were offered")
    print(f"of the wrong ones, {changed} changed something, in {failed} all calls failed")
    for name, goal in GOALS.items():
        share = whole[name] / max(1, whole["requests"])
        met = share >= goal if name == "well" else share <= goal
        words = "at least" if name == "well" else "at most"
        print(f"{name}: {share:.1%} (goal: {words} {goal:.0%}, {'met' if met else 'missed'})")
    if whole["evaluated"]:
        print(f"tokens evaluated: {whole['evaluated']}, written: {whole['written']}; {whole['seconds']} s")
    print(f"\nconfidence of the {whole['calls']} calls that ran, ECE {whole['ece']:.3f}")
    for one in whole["bins"]:
        mean, right = f"mean {one['confidence']:.2f}", f"{one['right']:.0%} in requests that ended well"
        print(f"  {one['low']:.1f} to {one['high']:.1f}: {one['count']:4} calls, {mean}, {right}")


def _share(count: int, whole: int) -> str:
    return f"{count} ({count / max(1, whole):.1%})"


def main(words: Sequence[str] | None = None) -> None:
    """Measure as the command line says."""
    parser = command_parser("benchmarks.everyday", __doc__)
    parser.add_argument("--requests", type=Path, action="append", default=[], help="a file of requests; several may be")
    parser.add_argument("--servers", nargs="+", choices=SERVERS, default=SERVERS, help="only requests on these")
    parser.add_argument("--only", action="append", default=[], metavar="ID", help="only this request; several may be")
    parser.add_argument("--explain", type=Path, help="file for what was said, done and found amiss, a line a request")
    parser.add_argument("--json", action="store_true", help="print one line of JSON a server")
    parser.add_argument("--model", default="", help="such as llamacpp:/path/model.gguf?n_threads=1")
    parser.add_argument("--plain", action="store_true", help="with plain tool calling, and not through Packetgate")
    parser.add_argument("--sample", type=int, help="so many requests, drawn with a fixed seed")
    given = parser.parse_args(words)
    if given.plain and not given.model:
        parser.error("--plain needs --model")
    with errors_in_one_line(parser):
        asked = [
            one
            for one in read_asked(given.requests)
            if set(one.servers) <= {*given.servers} and (not given.only or one.id in given.only)
        ]
        asked = drawn(asked, given.sample) if given.sample else asked
        with given.explain.open("w", encoding="utf-8") if given.explain else nullcontext() as explain:
            found = asyncio.run(measure(asked, explain, given.model, plain=given.plain))
    lines = [*figures(found)]
    if given.json:
        print("\n".join(map(json.dumps, lines)))
    else:
        show(lines)


if __name__ == "__main__":
    main()
