"""Measure the effect of confirmed uses on a user's ranking: MetaTool's test requests, with uses from its training set.

The benchmark writes the uses to a store on disk, then closes and reopens the store before the measurement.
"""

import argparse
import asyncio
import json
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.command_line import add_data_option, errors_in_one_line
from benchmarks.ranking.__main__ import recall
from benchmarks.ranking.data import Query, read_queries, read_tools
from packetgate.graph.settings import Settings
from packetgate.graph.storage import open_store
from packetgate.ranking.learning import ConfirmedUse, add_support, rank_surprise
from packetgate.ranking.ranking import ranking_of
from packetgate.ranking.store import read_learned, store_use
from packetgate.state.base import now
from packetgate.state.sections import Header
from packetgate.tools.catalogue.catalogue import Catalogue

CUTOFFS = (1, 5)
DEPTH = 50
ME = Header(origin="benchmark", person="me")


def uses_of(catalogue: Catalogue, queries: Sequence[Query], count: int) -> list[ConfirmedUse]:
    """Return `count` uses of each tool, the same in every run, with the part of each that the ranking did not know."""
    by_tool: dict[str, list[str]] = {}
    for query in queries:
        for tool in sorted(query.wanted[0]):
            by_tool.setdefault(tool, []).append(query.text)
    uses = []
    for tool, asked in sorted(by_tool.items()):
        for request in random.Random(tool).sample(asked, min(count, len(asked))):
            scores = {hit.name: hit.score for hit in ranking_of(catalogue).rank(request, DEPTH)}
            weight = rank_surprise(scores.get(tool, 0.0), max(scores.values(), default=0.0))
            use = {"tool": tool, "asked": request, "context_type": "general", "session_id": "s", "at": now()}
            uses.append(ConfirmedUse.model_validate({**use, "weight": weight}))
    return uses


async def measure(data: Path, count: int, step: int) -> dict[str, float]:
    """Return recall before and after learning, over every `step`-th request."""
    folder = data / "metatool_toole"
    tools = read_tools([folder / "tools.jsonl"])
    catalogue = Catalogue(tools.values())
    queries = read_queries([folder / "test.jsonl"], tools)[::step]
    uses = uses_of(catalogue, read_queries([folder / "train.jsonl"], tools), count)
    with tempfile.TemporaryDirectory() as made:
        settings = Settings(home=Path(made))
        async with open_store(settings) as store:
            for number, use in enumerate(uses):
                await store_use(store, ME, str(number), use)
        async with open_store(settings) as store:
            learned = await read_learned(store, ME)
    figures: dict[str, float] = {"tools": len(tools), "uses": len(uses), "queries": len(queries)}
    ranked = [(query, ranking_of(catalogue).rank(query.text, DEPTH)) for query in queries]
    taught = [(query, add_support(hits, learned.support(query.text, "general"))[:DEPTH]) for query, hits in ranked]
    for name, found in (("before", ranked), ("after", taught)):
        for cutoff in CUTOFFS:
            reached = [recall([hit.name for hit in hits[:cutoff]], query) for query, hits in found]
            figures[f"{name}, recall@{cutoff}"] = round(sum(reached) / len(reached), 4)
    return figures


def main() -> None:
    """Run the benchmark from the command line."""
    parser = argparse.ArgumentParser(prog="benchmarks.palette.learning", description=__doc__)
    add_data_option(parser)
    parser.add_argument("--uses", type=int, default=5, help="confirmed uses per tool")
    parser.add_argument("--every", type=int, default=1, help="measure on every n-th request")
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args()
    if args.data is None:
        parser.error("the folder of data sets is missing: use --data, or set PACKETGATE_DATA")
    with errors_in_one_line(parser):
        figures = asyncio.run(measure(args.data, args.uses, args.every))
    print(json.dumps(figures) if args.json else "\n".join(f"{name:18} {value:g}" for name, value in figures.items()))


if __name__ == "__main__":
    main()
