"""Count the tokens of tools in the selection prompt, and compare them with the selection tokens of other libraries.

Without options, the tools are the 527 tools of livemcpbench, if the folder of data sets is known, and those of the npm
filesystem server. `benchmarks.ranking` describes the files of `--tools` and `--queries`.

The full catalogue is every tool's name, description and schema. Packetgate's tool part is the capabilities ledger and
the offered tools; its whole selection prompt is the tools and all messages. A model on this machine receives brief
tools, a hosted model receives full tools. For LangChain, the benchmark counts all messages and the answer schema of its
`LLMToolSelectorMiddleware`; for FastMCP, the list of its BM25 search transform and the result of one search.
"""

import argparse
import asyncio
import json
import math
import statistics
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.command_line import add_data_option, command_parser, errors_in_one_line
from benchmarks.tokens.counting import VOCABULARY, count, openai_tools
from benchmarks.tokens.others import fastmcp_searches, langchain_selections
from benchmarks.tokens.packetgate import in_full, selections
from benchmarks.tokens.sets import Measured, filesystem, from_files, livemcpbench


@dataclass(frozen=True)
class Figure:
    """The tokens of one text, over all requests."""

    name: str
    tokens: Sequence[int]
    """Tokens for each request; one number if all requests have the same text."""
    full: int
    """Tokens of the full catalogue."""
    goal: float | None = None
    """Goal: the maximum share of the full catalogue, in every request."""

    @property
    def met(self) -> bool | None:
        """Whether the tokens stay below the goal; None without a goal."""
        return None if self.goal is None else max(self.tokens) < self.goal * self.full

    def as_json(self) -> dict[str, Any]:
        """Return the metrics by name; shares are from 0 to 1."""
        tokens = sorted(self.tokens)
        figures = {
            "median": statistics.median(tokens), "p95": tokens[math.ceil(0.95 * len(tokens)) - 1], "max": tokens[-1]
        }  # fmt: skip
        shares = {f"{name}_share": round(value / self.full, 4) for name, value in figures.items()}
        return {"name": self.name, **figures, **shares, "goal": self.goal, "met": self.met}

    def as_text(self) -> str:
        """Return the metrics as one line of text."""
        if len(self.tokens) == 1:
            return f"  {self.name:45} {self.tokens[0]:>10,} ({self.tokens[0] / self.full:7.2%})"
        values = self.as_json()
        each = [f"{key} {values[key]:>9,.0f} ({values[f'{key}_share']:7.2%})" for key in ("median", "p95", "max")]
        goal = f"  goal: below {self.goal:.0%}, {'met' if self.met else 'missed'}" if self.goal is not None else ""
        return f"  {self.name:45} {'  '.join(each)}{goal}"


async def measure(measured: Measured) -> list[Figure]:
    """Count the tokens for every request, with shares of the full catalogue in Packetgate's form."""
    catalogue, requests = measured.catalogue, measured.requests
    full = count(in_full(catalogue))
    asked = [one async for one in selections(catalogue, requests)]
    hosted = [one async for one in selections(catalogue, requests, runs_here=False)]
    langchain = [count(text) async for text in langchain_selections(catalogue, requests)]
    fastmcp = [count(text) async for text in fastmcp_searches(catalogue, requests)]
    return [
        Figure("full catalogue", [full], full),
        Figure("full catalogue as OpenAI tools", [count(openai_tools(catalogue.values()))], full),
        Figure("packetgate, tool part", [count(one.tool_part) for one in asked], full, measured.goal),
        Figure("packetgate, whole selection prompt", [count(one.whole) for one in asked], full),
        Figure("packetgate, whole selection prompt of a hosted model", [count(one.whole) for one in hosted], full),
        Figure("langchain LLMToolSelectorMiddleware", langchain, full),
        Figure("fastmcp BM25SearchTransform", fastmcp, full),
    ]


def show(measured: Measured, figures: Sequence[Figure], *, as_json: bool) -> None:
    """Print the metrics."""
    size = {"set": measured.name, "tools": len(measured.catalogue), "requests": len(measured.requests)}
    if as_json:
        for figure in figures:
            print(json.dumps({**size, "left_out": measured.left_out, **figure.as_json()}))
        return
    print(f"tokens, {measured.name}: {size['requests']:,} requests, {size['tools']:,} tools; {VOCABULARY}")
    if measured.left_out:
        print(f"  {measured.left_out:,} tools with the names of an earlier tool and its server are left out")
    for figure in figures:
        print(figure.as_text())


async def sets(given: argparse.Namespace) -> AsyncIterator[Measured]:
    """Yield the sets of the command line.

    Raises:
        InputError: a file, a folder or a program is missing.
    """
    if given.tools:
        yield await asyncio.to_thread(from_files, "files", given.tools, given.queries)
        return
    if given.data:
        yield await asyncio.to_thread(livemcpbench, given.data)
    else:
        print("livemcpbench is left out: give the folder of data sets, or set PACKETGATE_DATA", file=sys.stderr)
    yield await filesystem()


async def run(given: argparse.Namespace) -> None:
    """Count the tokens, and print each set as soon as it is counted.

    Raises:
        InputError: a set is missing.
    """
    async for measured in sets(given):
        show(measured, await measure(measured), as_json=given.json)


def main() -> None:
    """Run the benchmark from the command line."""
    parser = command_parser("benchmarks.tokens", __doc__)
    add_data_option(parser, "data")
    parser.add_argument("--tools", type=Path, nargs="+", help="file of own tools")
    parser.add_argument("--queries", type=Path, nargs="+", help="file of requests that need the tools")
    parser.add_argument("--json", action="store_true", help="print JSON, one line per metric")
    given = parser.parse_args()
    if bool(given.tools) != bool(given.queries):
        parser.error("--tools and --queries go together")
    with errors_in_one_line(parser):
        asyncio.run(run(given))


if __name__ == "__main__":
    main()
