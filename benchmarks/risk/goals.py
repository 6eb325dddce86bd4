"""`python -m benchmarks.risk.goals DATA FOUND`: count false reads in all public catalogues, without confirmations.

FOUND is a folder with `risk_shapes.jsonl` and `risk_public.jsonl`, which contain calls that change something. The
benchmark counts calls that would run as reads, and unconfirmed reads, which run if the user trusts the tool. The exit
status is 1 if there is a false read.
"""

import sys
from pathlib import Path
from typing import Any

from mcp_types import Tool

from benchmarks.risk.data import catalogue, data_folder, labelled, rows
from packetgate.state.routing import Risk
from packetgate.tools.risk.call import judge_call
from packetgate.tools.risk.registry import load_registry
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.toolsets.servers.specs import spec_of

_CATALOGUES = ("toucan_mcp_catalog", "livemcpbench")


def main() -> int:
    """Print a row for each source."""
    data, found = data_folder(sys.argv[1:]), Path(sys.argv[2])
    false_reads = 0
    print("| source | tools or calls | run as reads, nothing confirmed | look like reads |\n|---|--:|--:|--:|")
    for name in _CATALOGUES:
        specs = [_spec(row) for row in rows(data / "routing" / name / "tools.jsonl")]
        false_reads += _report(f"{name}, tools", [spec.risk for spec in specs], _count_unconfirmed(specs))
    labels = [*labelled(data), *catalogue(data)]
    writers = [
        _spec({"name": one.tool.name, "description": one.tool.description, "input_schema": one.tool.schema})
        for one in labels
        if one.does_more
    ]
    false_reads += _report("labelled writers, tools", [spec.risk for spec in writers], _count_unconfirmed(writers))
    tools = {row["name"]: row for name in _CATALOGUES for row in rows(data / "routing" / name / "tools.jsonl")}
    for name in ("risk_shapes", "risk_public"):
        calls = [
            judge_call(_spec(tools[row["tool"]] if "tool" in row else row), row["call"])
            for row in rows(found / f"{name}.jsonl")
        ]
        unconfirmed = sum(call.is_unconfirmed_read for call in calls)
        false_reads += _report(f"{name}, calls that change something", [call.risk for call in calls], unconfirmed)
    known = [label for server in load_registry().servers for label in server.tools.values()]
    reads = sum(label.risk is Risk.READ for label in known)
    print(f"\n{load_registry().description}: {reads} reads, none of them asked about")
    return int(false_reads > 0)


def _report(name: str, risks: list[Risk], unconfirmed: int) -> int:
    reads = sum(risk is Risk.READ for risk in risks)
    print(f"| {name} | {len(risks):,} | {reads} | {unconfirmed:,} |")
    return reads


def _count_unconfirmed(specs: list[ToolSpec]) -> int:
    return sum(spec.is_unconfirmed_read for spec in specs)


def _spec(row: dict[str, Any]) -> ToolSpec:
    schema = {"type": "object", **(row.get("input_schema") or {})}
    listed = Tool(name=row["name"], description=row.get("description") or "", input_schema=schema)
    return spec_of("found", listed, trusted=False)


if __name__ == "__main__":
    sys.exit(main())
