"""Read labelled requests for the gate: our own requests, and those of BFCL if its files are available."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp_types import Tool

from benchmarks.selection.cases import as_json_schema
from packetgate.state.errors import InputError
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.toolsets.servers.specs import spec_of

OWN = Path(__file__).with_name("data")
BFCL_FILES = ("multiple.jsonl", "live_multiple.jsonl", "irrelevance.jsonl")
BFCL_EACH = 80
"""Number of requests from each file, evenly spread."""


@dataclass(frozen=True)
class Labelled:
    """A request, its tools, and the right tools among them."""

    text: str
    catalogue: Catalogue
    wanted: frozenset[str]
    """The right tools, of which any one suffices; empty if no tool fits."""


def own_requests() -> list[Labelled]:
    """Return requests and tools that were written for this benchmark. No tool fits a fifth of the requests."""
    catalogue = Catalogue(
        _spec(row["server"], row["name"], row["description"], row["input_schema"]) for row in _rows(OWN / "tools.jsonl")
    )
    return [
        Labelled(row["query"], catalogue, frozenset(row["gold"])) for row in _rows(OWN / "requests.jsonl")
    ]  # fmt: skip


def bfcl(data: Path, each: int = BFCL_EACH) -> list[Labelled]:
    """Return requests of the Berkeley Function Calling Leaderboard, each with its own tools.

    Raises:
        InputError: the folder of data sets does not contain them.
    """
    folder = data / "bfcl_v4"
    if not folder.is_dir():
        raise InputError(f"{folder} does not exist: give the folder of data sets, or set PACKETGATE_DATA")
    return [one for name in BFCL_FILES for one in _of_file(folder, name, each)]


def _of_file(folder: Path, name: str, each: int) -> Iterable[Labelled]:
    answers = folder / "possible_answer" / name
    gold = {row["id"]: row["ground_truth"] for row in _rows(answers)} if answers.exists() else {}
    for row in _spread(_rows(folder / name), each):
        specs = [
            _spec("bfcl", tool["name"], tool["description"], as_json_schema(tool["parameters"]))
            for tool in row["function"]
        ]
        said = [message["content"] for message in row["question"][0] if message["role"] == "user"]
        wanted = frozenset(f"bfcl.{tool}" for call in gold.get(row["id"], []) for tool in call)
        yield Labelled("\n".join(said), Catalogue(specs), wanted)


def _spread(rows: Sequence[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """Return `count` rows, evenly spread over the file, or all rows if there are fewer."""
    return [rows[at * len(rows) // count] for at in range(count)] if count < len(rows) else list(rows)


def _rows(path: Path) -> list[dict[str, Any]]:
    try:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as JSON Lines: {error}") from error


def _spec(server: str, name: str, description: str, schema: dict[str, Any]) -> ToolSpec:
    """Return the tool as a tool of an unknown server, whose risk is rated by its name."""
    return spec_of(server, Tool(name=name, description=description, input_schema=schema), trusted=False)
