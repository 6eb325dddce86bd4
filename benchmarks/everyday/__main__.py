"""Measure the outcomes of plain everyday requests on the built-in tools and on six public MCP servers.

Without a model, or with a model: through Packetgate, or by plain tool calling (`--plain`), where every call runs.

Before each request, the benchmark resets the world: a folder under git, a database, a memory, and a site on loopback.
It sends the request to a new session of the real graph, with writes and commands enabled. A simulated person approves
every call that needs approval. If Packetgate offers commands by number, the person picks the first. Afterwards, the
benchmark compares the world and the last answer with the expected ones. The outcome of a request is

- well, if every expectation holds and nothing else has changed. If no tool fits, the only expectation is that no call
  runs. A question in words counts as well only if the request expects a question.
- asked, if the request ends with an unexpected question in words and without an unexpected change; or if the person
  picked the wrong command; or if the person could have refused every call of the last turn, because each review was
  below the threshold.
- declined, if no call ran in the last turn, nothing unexpected has changed, and the turn asks no question.
- wrong otherwise: a call ran, and an expectation does not hold or something unexpected has changed, even if the person
  approved the call.

The benchmark compares the confidence of a call with whether the outcome of its request is well.
"""

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, nullcontext
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any, TextIO

from benchmarks.command_line import command_parser, errors_in_one_line
from benchmarks.everyday.cases import SERVERS, Request, ServerName, read_requests
from benchmarks.everyday.figures import GOALS, OUTCOMES, explanation, figures
from benchmarks.everyday.grading import Grade, TimeSpan, grade
from benchmarks.everyday.plain import play_plainly
from benchmarks.everyday.playing import play
from benchmarks.everyday.servers import open_servers
from benchmarks.everyday.world import World, served_site
from benchmarks.real_models.opening import by_one, open_model
from benchmarks.selection.cases import drawn
from packetgate.deciders.choosing import reflex_deciders


async def graded(
    requests: Sequence[Request], name: str = "", *, plain: bool = False, port: int = 0
) -> AsyncGenerator[Grade]:
    """Play the requests in the order of their servers, and yield their grades.

    Args:
        name: the model, as in PACKETGATE_LITE; empty for no model.
        plain: use plain tool calling.
        port: port of the site, or 0 for any free port. Reviews read the addresses in requests, with their ports.

    Raises:
        InputError: a server does not start, the port is in use, or there is no such model.
    """
    model = await open_model(name) if name else None
    deciders = by_one(model) if model else reflex_deciders()
    by_servers = groupby(sorted(requests, key=_server_names), key=_server_names)
    with served_site(port) as site, tempfile.TemporaryDirectory(prefix="everyday-") as folder:
        world = World(Path(folder), site)
        for number, (names, group) in enumerate(by_servers):
            home = Path(folder) / f"home-{number}"
            home.mkdir()
            async with open_servers(names, world, home, deciders) as servers:
                for request in group:
                    await asyncio.to_thread(world.reset)
                    started = datetime.now(UTC)
                    if plain and model:
                        transcript = await play_plainly(servers.hub, model, request, site)
                    else:
                        async with servers.sessions() as sessions:
                            transcript = await play(sessions, request, site)
                    span = TimeSpan(started, datetime.now(UTC))
                    yield await asyncio.to_thread(grade, request, transcript, world, span)


def _server_names(request: Request) -> tuple[ServerName, ...]:
    return request.server_names


async def measure(
    requests: Sequence[Request], explain: TextIO | None, name: str = "", *, plain: bool = False, port: int = 0
) -> list[Grade]:
    """Play the requests, and write the explanation of each grade immediately.

    Raises:
        InputError: a server does not start, the port is in use, or there is no such model.
    """
    grades: list[Grade] = []
    async with aclosing(graded(requests, name, plain=plain, port=port)) as found:
        async for one in found:
            grades.append(one)
            if explain:
                print(json.dumps(explanation(one), ensure_ascii=False), file=explain, flush=True)
            print(f"{len(grades)} of {len(requests)}", end="\r", file=sys.stderr, flush=True)
    return grades


def show(lines: Sequence[dict[str, Any]]) -> None:
    """Print the metrics as text."""
    print(f"{'':12}{'requests':>9}" + "".join(f"{name:>16}" for name in OUTCOMES) + f"{'questions':>11}")
    for line in lines:
        shares = "".join(f"{_share(line[name], line['requests']):>16}" for name in OUTCOMES)
        print(f"{line['name']:12}{line['requests']:>9}{shares}{line['questions']:>11}")
    whole = lines[-1]
    changed, failed = whole["wrong_changed"], whole["wrong_failed"]
    print(f"\nof those that ended well, {whole['picked']} by choosing the first offered command")
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
    """Run the benchmark from the command line."""
    parser = command_parser("benchmarks.everyday", __doc__)
    parser.add_argument("--requests", type=Path, action="append", default=[], help="file of requests; can be repeated")
    parser.add_argument("--servers", nargs="+", choices=SERVERS, default=SERVERS, help="only requests on these servers")
    parser.add_argument("--only", action="append", default=[], metavar="ID", help="only this request; can be repeated")
    parser.add_argument("--explain", type=Path, help="file for the messages, calls and problems, one line per request")
    parser.add_argument("--json", action="store_true", help="print JSON, one line per server")
    parser.add_argument("--model", default="", help="model, such as llamacpp:/path/model.gguf?n_threads=1")
    parser.add_argument("--plain", action="store_true", help="use plain tool calling instead of Packetgate")
    parser.add_argument("--port", type=int, default=18_473, help="port of the site, 0 for any free port")
    parser.add_argument("--sample", type=int, help="number of requests, drawn with a fixed seed")
    given = parser.parse_args(words)
    if given.plain and not given.model:
        parser.error("--plain needs --model")
    with errors_in_one_line(parser):
        requests = [
            request
            for request in read_requests(given.requests)
            if set(request.servers) <= {*given.servers} and (not given.only or request.id in given.only)
        ]
        requests = drawn(requests, given.sample) if given.sample else requests
        with given.explain.open("w", encoding="utf-8") if given.explain else nullcontext() as explain:
            grades = asyncio.run(measure(requests, explain, given.model, plain=given.plain, port=given.port))
    lines = [*figures(grades)]
    if given.json:
        print("\n".join(map(json.dumps, lines)))
    else:
        show(lines)


if __name__ == "__main__":
    main()
