"""Palettes of tools from real servers, for models with random weights: 1,000 in nightly runs, otherwise 200."""

import os
import random
from collections.abc import Iterator

from support.data_folder import read_rows
from support.tool_specs import a_tool
from support.tricky_schemas import SCHEMAS

from packetgate.tools.spec.tool_spec import ToolSpec

NIGHTLY = bool(os.environ.get("PACKETGATE_NIGHTLY"))
PALETTES = 1_000 if NIGHTLY else 200
SIZE = 5

CATALOGUE = ("toucan_mcp_catalog", "tools.jsonl")


def all_tools() -> list[ToolSpec]:
    """Return our own tools and, if available, tools of real servers: all in nightly runs, otherwise as many as fit."""
    rows = [(f"real.{number}", row["input_schema"]) for number, row in enumerate(read_rows(*CATALOGUE))]
    own = [(f"own.{name}", schema) for name, schema in SCHEMAS.items()]
    if not NIGHTLY:
        random.Random(0).shuffle(rows)
        del rows[PALETTES * SIZE - len(own) :]
    return [a_tool(name, schema=schema or {"type": "object"}) for name, schema in rows + own]


def palettes() -> Iterator[list[ToolSpec]]:
    """Yield palettes that contain every tool at least once, and repeat our own tools if there are too few others."""
    tools = all_tools()
    random.Random(0).shuffle(tools)
    size = max(SIZE, -(-len(tools) // PALETTES))
    supply = (tools * -(-PALETTES * size // len(tools)))[: PALETTES * size]
    for number in range(PALETTES):
        chosen = {tool.name: tool for tool in supply[number * size : (number + 1) * size]}
        yield list(chosen.values())
