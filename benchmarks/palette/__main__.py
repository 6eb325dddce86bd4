"""Measure how often the needed tools are on the palette, the palette's tokens, and the duration of the choice.

For comparison, FastMCP's BM25 search transform shows its best results in full within the same budget. The files have
the format of `benchmarks.ranking`. With --data or PACKETGATE_DATA, the benchmark measures all sets for model choice or
reports. It rates the risk of tools and the access of requests as a turn without a model does.
"""

import argparse
import json
import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks.command_line import add_data_option, command_parser, errors_in_one_line
from benchmarks.ranking.__main__ import fastmcp
from benchmarks.ranking.data import Query, read_queries, read_tools
from benchmarks.train.data import Source, Use, sources
from packetgate.ranking.choice import PaletteRequest, cached_token_count, choose_palette, tool_text
from packetgate.state.context import RoutingContext
from packetgate.state.sections import PaletteDetail
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.risk.parameter_kinds import Definition
from packetgate.tools.risk.tool import judge_tool
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.reading import access_of
from packetgate.tools.text.tokens import ESTIMATE

DEFAULTS = RoutingContext()
USES: tuple[Use, ...] = ("choose", "report")
WARM_UP = 3

Choose = Callable[[str], Mapping[str, PaletteDetail]]
"""Maps a request to the tools that selection sees, and their levels of detail."""


@dataclass
class Figures:
    """Results of one chooser, request by request."""

    found: dict[PaletteDetail, list[float]] = field(default_factory=lambda: {"full": [], "brief": [], "name": []})
    """Shares of the needed tools that are shown with at least this detail."""
    sizes: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    took_ms: list[float] = field(default_factory=list)

    def summary(self) -> dict[str, float]:
        """Return the metrics by name: shares from 0 to 1, medians, times in milliseconds."""
        shares = {shown: statistics.fmean(shares) for shown, shares in self.found.items()}
        took = sorted(self.took_ms)
        return {
            "on_palette": round(sum(shares.values()), 4),
            **{f"in_{shown}": round(share, 4) for shown, share in shares.items()},
            "tools_shown": statistics.median(self.sizes),
            "tokens": statistics.median(self.tokens),
            "most_tokens": max(self.tokens),
            "p50_ms": round(statistics.median(took), 3),
            "p95_ms": round(took[math.ceil(0.95 * len(took)) - 1], 3),
        }


def packetgate(catalogue: Catalogue) -> Choose:
    """Return a chooser with Packetgate's palette and default settings."""

    def choose(request: str) -> Mapping[str, PaletteDetail]:
        wanted = PaletteRequest(
            request, access_of(request), size=DEFAULTS.palette_size, token_budget=DEFAULTS.palette_token_budget
        )
        return {entry.tool_name: entry.detail for entry in choose_palette(wanted, catalogue).entries}

    return choose


def fastmcp_in_full(catalogue: Catalogue) -> Choose:
    """Return a chooser with FastMCP's best results, each in full, within the same budget."""
    rank = fastmcp(list(catalogue.values()), DEFAULTS.palette_size)

    def choose(request: str) -> Mapping[str, PaletteDetail]:
        chosen: dict[str, PaletteDetail] = {}
        room = DEFAULTS.palette_token_budget
        for name in rank(request):
            room -= cached_token_count(ESTIMATE.count, tool_text(catalogue[name], "full"))
            if room < 0:
                break
            chosen[name] = "full"
        return chosen

    return choose


def measure(choosers: Mapping[str, Choose], queries: Sequence[Query], catalogue: Catalogue) -> dict[str, Figures]:
    """Run all choosers alternately on every request."""
    figures = {name: Figures() for name in choosers}
    for query in queries[:WARM_UP]:
        for choose in choosers.values():
            choose(query.text)
    for query in queries:
        for name, choose in choosers.items():
            started = time.perf_counter()
            chosen = choose(query.text)
            figures[name].took_ms.append(1000 * (time.perf_counter() - started))
            figures[name].sizes.append(len(chosen))
            figures[name].tokens.append(
                sum(
                    cached_token_count(ESTIMATE.count, tool_text(catalogue[one], shown))
                    for one, shown in chosen.items()
                )
            )
            best = [_best_shown(group & chosen.keys(), chosen) for group in query.wanted]
            for shown, shares in figures[name].found.items():
                shares.append(best.count(shown) / len(best))
    return figures


def _best_shown(names: frozenset[str], chosen: Mapping[str, PaletteDetail]) -> PaletteDetail | None:
    return next((shown for shown in ("full", "brief", "name") if any(chosen[name] == shown for name in names)), None)


def as_listed(tools: Mapping[str, ToolSpec]) -> Catalogue:
    """Return a catalogue that rates each tool's risk by its own definition, as for untrusted servers."""
    return Catalogue(
        replace(
            spec,
            risk=judge_tool(Definition(spec.upstream_name, spec.full, spec.input_schema)).apparent_risk,
        )
        for spec in tools.values()
    )


def main() -> None:
    """Run the benchmark from the command line."""
    parser = command_parser("benchmarks.palette", __doc__)
    parser.add_argument("--tools", type=Path, nargs="+", help="file of the tools to find")
    parser.add_argument("--queries", type=Path, nargs="+", help="file of requests with the needed tools")
    parser.add_argument("--distractors", type=Path, nargs="+", default=[], help="more tools that no request needs")
    add_data_option(parser)
    parser.add_argument("--most", type=int, help="maximum number of requests per set, evenly spread")
    parser.add_argument("--json", action="store_true", help="print JSON, one line per set and chooser")
    args = parser.parse_args()
    if bool(args.tools) != bool(args.queries) or not (args.tools or args.data):
        parser.error("give --tools and --queries, or --data or PACKETGATE_DATA")
    with errors_in_one_line(parser):
        summaries: dict[str, list[dict[str, float]]] = {}
        for source in _sources(args):
            catalogue = as_listed(source.tools)
            queries = source.queries[:: -(-len(source.queries) // args.most)] if args.most else source.queries
            choosers = {"packetgate": packetgate(catalogue), "fastmcp": fastmcp_in_full(catalogue)}
            for name, figures in measure(choosers, queries, catalogue).items():
                summary = figures.summary()
                summaries.setdefault(name, []).append(summary)
                size = {"tools": len(catalogue), "queries": len(queries)}
                _show({"set": source.name, "name": name, **size, **summary}, as_json=args.json)
    for name, all_of_it in summaries.items():
        if len(all_of_it) > 1:
            mean = {figure: round(statistics.fmean(one[figure] for one in all_of_it), 4) for figure in all_of_it[0]}
            _show({"set": "mean of the sets", "name": name, **mean}, as_json=args.json)


def _sources(args: argparse.Namespace) -> Iterator[Source]:
    if not args.tools:
        for use in USES:
            yield from sources(args.data, use)
        return
    wanted = read_tools(args.tools)
    more = read_tools(args.distractors) if args.distractors else {}
    yield Source(", ".join(map(str, args.queries)), {**more, **wanted}, read_queries(args.queries, wanted))


def _show(line: Mapping[str, float | str], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(line), flush=True)
        return
    size = f"{line['queries']:,} requests, {line['tools']:,} tools" if "tools" in line else ""
    if line["name"] == "packetgate":
        print(f"{line['set']}: {size}" if size else f"{line['set']}:")
    figures = (f"{name} {value:g}" for name, value in line.items() if name not in {"set", "name", "tools", "queries"})
    print(f"  {line['name']:10}  {'  '.join(figures)}", flush=True)


if __name__ == "__main__":
    main()
