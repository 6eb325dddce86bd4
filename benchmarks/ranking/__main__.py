"""Measure quality and speed of the ranking of tools, compared with the index of FastMCP's BM25 search transform.

Files are JSON Lines. Tools: {id, server, name, description, input_schema}, or rows whose `function` lists tools.
Requests: {query, gold: [id]} or {query, gold_any: [[equivalent ids]]}, or {id, question} with the answers in
`possible_answer/` next to the file. Recall is the share of needed tools. FastMCP's time covers only its index.
"""

import asyncio
import json
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fastmcp.server.transforms.search import BM25SearchTransform
from fastmcp.tools.base import Tool

from benchmarks.command_line import command_parser, errors_in_one_line
from benchmarks.ranking.data import Query, read_queries, read_tools
from benchmarks.train.data import sources
from packetgate.ranking.ranking import Ranking
from packetgate.reflex.meaning.ranker import SemanticModel
from packetgate.tools.spec.tool_spec import ToolSpec

CUTOFFS = (1, 5, 10)
DEPTH = max(CUTOFFS)
WARM_UP = 10

Rank = Callable[[str], Sequence[str]]
"""Maps a request to the ids of the best tools, best first."""


@dataclass
class Figures:
    """Results of one ranker, request by request."""

    recalls: list[dict[int, float]] = field(default_factory=list)
    gains: list[float] = field(default_factory=list)
    took_ms: list[float] = field(default_factory=list)

    def summary(self) -> dict[str, float]:
        """Return the metrics by name; times in milliseconds."""
        took = sorted(self.took_ms)
        return {
            **{f"recall@{k}": round(statistics.fmean(one[k] for one in self.recalls), 4) for k in CUTOFFS},
            f"ndcg@{DEPTH}": round(statistics.fmean(self.gains), 4),
            "p50_ms": round(statistics.median(took), 3),
            "p95_ms": round(took[math.ceil(0.95 * len(took)) - 1], 3),
        }


def packetgate(tools: Sequence[ToolSpec], vectors: Path | None = None, mix: Path | None = None) -> Rank:
    """Return Packetgate's ranking with a vector for every tool; `mix` replaces the shipped weights."""
    meaning = SemanticModel(vectors)
    if mix is not None:
        meaning.trees = mix
    ranking = Ranking(tools, meaning=meaning)
    ranking.rank("warm up")
    meaning.fine.wait()
    return lambda request: [hit.name for hit in ranking.rank(request, DEPTH)]


def fastmcp(tools: Sequence[ToolSpec], depth: int = DEPTH) -> Rank:
    """Return FastMCP's ranking. Tool names are the ids, as FastMCP adds the server to names of mounted tools."""
    transform = BM25SearchTransform(max_results=depth)
    known = [  # without validation, because FastMCP warns of every name with characters outside MCP's set
        Tool.model_construct(name=tool.name, description=tool.full, parameters={"properties": tool.parameters})
        for tool in tools
    ]
    asyncio.run(transform._search(known, ""))
    return lambda request: [tools[at].name for at in transform._index.query(request, depth)]


def bm25s(tools: Sequence[ToolSpec]) -> Rank:
    """Return the ranking of bm25s with its default stop words, on the texts that FastMCP searches."""
    import bm25s as library

    texts = [
        " ".join([
            tool.name, tool.full,
            *(f"{name} {schema.get('description', '')}" for name, schema in tool.parameters.items()),
        ])
        for tool in tools
    ]  # fmt: skip
    index = library.BM25()
    index.index(library.tokenize(texts, stopwords="en", show_progress=False), show_progress=False)

    def rank(request: str) -> list[str]:
        words = library.tokenize([request], stopwords="en", show_progress=False, return_ids=False)
        if not any(words):
            return []
        found, scores = index.retrieve(words, k=min(DEPTH, len(tools)), show_progress=False)
        return [tools[at].name for at, score in zip(found[0], scores[0], strict=True) if score > 0]

    return rank


def measure(rankers: Mapping[str, Rank], queries: Sequence[Query]) -> dict[str, Figures]:
    """Run all rankers alternately on every request."""
    figures = {name: Figures() for name in rankers}
    for query in queries[:WARM_UP]:
        for rank in rankers.values():
            rank(query.text)
    for query in queries:
        for name, rank in rankers.items():
            started = time.perf_counter()
            ranked = rank(query.text)
            figures[name].took_ms.append(1000 * (time.perf_counter() - started))
            figures[name].recalls.append({k: recall(ranked[:k], query) for k in CUTOFFS})
            figures[name].gains.append(ndcg(ranked[:DEPTH], query))
    return figures


def recall(ranked: Sequence[str], query: Query) -> float:
    """Return the share of needed tools in `ranked`."""
    return sum(not one.isdisjoint(ranked) for one in query.wanted) / len(query.wanted)


def ndcg(ranked: Sequence[str], query: Query) -> float:
    """Return the normalised discounted gain: 1 if the needed tools come first. Each tool counts once."""
    left = list(query.wanted)
    gain = 0.0
    for place, name in enumerate(ranked):
        found = next((one for one in left if name in one), None)
        if found is not None:
            left.remove(found)
            gain += 1 / math.log2(place + 2)
    return gain / sum(1 / math.log2(place + 2) for place in range(min(DEPTH, len(query.wanted))))


def main() -> None:
    """Run the benchmark from the command line."""
    parser = command_parser("benchmarks.ranking", __doc__)
    parser.add_argument("--data", type=Path, help="folder of all data sets, instead of the files below")
    parser.add_argument("--mixes", type=Path, help="weights for a set by its name, from `benchmarks.train.mix --folds`")
    parser.add_argument("--vectors", type=Path, help="store the tools' vectors in this file for the next run")
    parser.add_argument("--tools", type=Path, nargs="+", default=[], help="file of the tools to find")
    parser.add_argument("--queries", type=Path, nargs="+", default=[], help="file of requests with the needed tools")
    parser.add_argument("--distractors", type=Path, nargs="+", default=[], help="more tools that no request needs")
    parser.add_argument("--json", action="store_true", help="print JSON, one line per ranker")
    args = parser.parse_args()
    if args.data is None and not (args.tools and args.queries):
        parser.error("give --data, or --tools and --queries")
    with errors_in_one_line(parser):
        if args.data is not None:
            every_set(args.data, args.vectors, args.mixes, as_json=args.json)
            return
        wanted = read_tools(args.tools)
        queries = read_queries(args.queries, wanted)
        tools = {**(read_tools(args.distractors) if args.distractors else {}), **wanted}
    known = list(tools.values())
    figures = measure(rankers(known, args.vectors), queries)
    size = {"tools": len(wanted), "distractors": len(tools) - len(wanted), "queries": len(queries)}
    size["unknown"] = sum(not one for query in queries for one in query.wanted)
    show({name: one.summary() for name, one in figures.items()}, size, as_json=args.json)


def rankers(tools: Sequence[ToolSpec], vectors: Path | None = None, mix: Path | None = None) -> dict[str, Rank]:
    """Return Packetgate's ranking and the rankings of other libraries."""
    return {"packetgate": packetgate(tools, vectors, mix), "fastmcp": fastmcp(tools), "bm25s": bm25s(tools)}


def every_set(data: Path, vectors: Path | None, mixes: Path | None, *, as_json: bool) -> None:
    """Measure on every set that has its own test or did not train the encoder, and print the means."""
    found: dict[str, dict[str, Figures]] = {}
    for use in ("mix", "report"):
        for source in sources(data, use):
            own = mixes / source.name / "mix.npz" if mixes else None
            mix = own if own is not None and own.is_file() else None
            figures = measure(rankers(list(source.tools.values()), vectors, mix), source.queries)
            found[source.name] = figures
            size = {"tools": len(source.tools), "distractors": 0, "queries": len(source.queries), "unknown": 0}
            summaries = {name: one.summary() for name, one in figures.items()}
            if not as_json:
                print(f"{source.name}{' (left out of the weights)' if mix else ''}")
            show(summaries, size, source.name, as_json=as_json)
    if not as_json:
        for name in next(iter(found.values())):
            each = [figures[name].summary() for figures in found.values()]
            means = [f"recall@{k} {statistics.fmean(one[f'recall@{k}'] for one in each):.3f}" for k in CUTOFFS]
            print(f"  mean of the sets, {name:10}  {'  '.join(means)}")


def show(
    summaries: Mapping[str, Mapping[str, float]], size: Mapping[str, int], name_of_set: str = "", *, as_json: bool
) -> None:
    """Print the metrics."""
    if as_json:
        for name, summary in summaries.items():
            print(json.dumps({**({"set": name_of_set} if name_of_set else {}), "name": name, **size, **summary}))
        return
    print(f"ranking: {size['queries']:,} requests, {size['tools']:,} tools, {size['distractors']:,} distractors")
    if size["unknown"]:
        print(f"  {size['unknown']:,} needed tools are missing in the files: counted as not found")
    for name, summary in summaries.items():
        print(f"  {name:10}  {'  '.join(f'{figure} {value:.3f}' for figure, value in summary.items())}")


if __name__ == "__main__":
    main()
