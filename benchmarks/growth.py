"""Measure ranking and palettes in catalogues of up to 100,000 tools, and compare them with other rankings.

The tools are those of livemcpbench, or made-up office tools if the data sets are missing. Copies under other names fill
the catalogue. A copy gets the vector of its original, because encoding all copies would take hours.
"""

import json
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product

from benchmarks.command_line import add_data_option, command_parser
from benchmarks.palette.__main__ import packetgate as palette
from benchmarks.ranking.__main__ import bm25s, fastmcp
from benchmarks.ranking.data import read_queries, read_tools
from benchmarks.ready import THINGS, VERBS, grown, office_tools
from packetgate.ranking.ranking import ranking_of
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.spec.tool_spec import ToolSpec

SIZES = (10, 100, 1_000, 10_000, 100_000)
REQUESTS = 30
WARM_UP = 2
Take = Callable[[str], object]
TAKES: dict[str, Callable[[Catalogue], Take]] = {
    "palette": palette,
    "ranking": lambda catalogue: partial(ranking_of(catalogue).rank, limit=10),
}
RIVALS = {"fastmcp": fastmcp, "bm25s": bm25s}


def measure(
    originals: Sequence[ToolSpec], requests: Sequence[str], sizes: Sequence[int] = SIZES
) -> Iterator[dict[str, object]]:
    """Yield the median and 95th percentile in milliseconds for each size and ranking. The rankings alternate."""
    for size in sizes:
        started = time.perf_counter()
        catalogue = grown(originals, size)
        made_s = {"palette": round(time.perf_counter() - started, 2)}
        takers: dict[str, Take] = {name: make(catalogue) for name, make in TAKES.items()}
        for name, make in RIVALS.items():
            started = time.perf_counter()
            takers[name] = make([*catalogue.values()])
            made_s[name] = round(time.perf_counter() - started, 2)
        took: dict[str, list[float]] = {name: [] for name in takers}
        for own, other in zip(requests[::2], requests[1::2], strict=False):  # a palette caches its ranking
            for name, take in takers.items():
                started = time.perf_counter()
                take(own if name == "palette" else other)
                took[name].append(1000 * (time.perf_counter() - started))
        for name, times in took.items():
            middle, late = statistics.quantiles(times[WARM_UP:], n=20)[9::9]
            line = {"name": name, "tools": size, "p50_ms": round(middle, 3), "p95_ms": round(late, 3)}
            yield line | ({"made_s": made_s[name]} if name in made_s else {})


def main() -> None:
    """Run the benchmark from the command line."""
    parser = command_parser("benchmarks.growth", __doc__)
    add_data_option(parser)
    parser.add_argument("--requests", type=int, default=REQUESTS, help="requests per size (default %(default)s)")
    parser.add_argument("--most", type=int, default=SIZES[-1], help="largest number of tools (default %(default)s)")
    parser.add_argument("--json", action="store_true", help="print JSON, one line per size and ranking")
    args = parser.parse_args()
    originals: Sequence[ToolSpec] = office_tools()
    requests = [f"{verb} the {thing} of Tuesday" for thing, verb in product(THINGS, VERBS)]
    if args.data is not None:
        folder = args.data / "livemcpbench"
        tools = read_tools([folder / "tools.jsonl"])
        originals = [*tools.values()]
        requests = [query.text for query in read_queries([folder / "queries.jsonl"], tools)]
    many = 2 * (args.requests + WARM_UP)
    few = requests[:: max(1, len(requests) // many)][:many]
    for line in measure(originals, few, [size for size in SIZES if size <= args.most]):
        text = (
            f"{line['name']:8} {line['tools']:>7,} tools: {line['p50_ms']:,} ms, 95th percentile {line['p95_ms']:,} ms"
        )
        print(json.dumps(line) if args.json else text, flush=True)


if __name__ == "__main__":
    main()
