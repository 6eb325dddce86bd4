"""Print the decisions of the encoder, the judge and the reader of values for short requests, as JSON.

`test_processors.py` runs it natively and emulated. An emulated request takes seconds, so the imports are minimal.
"""

import json
import sys
from pathlib import Path
from typing import Any

from packetgate.ranking.ranking import Ranking
from packetgate.reflex.judge.judge import judge
from packetgate.reflex.values.filling import fill_parameters
from packetgate.state.routing import Risk
from packetgate.tools.spec.tool_spec import ToolSpec

OWN = Path(__file__).parents[2] / "benchmarks" / "train" / "own"
TOOLS = {
    "read_file": ("Read a file", "path"),
    "list_folder": ("List a folder", "path"),
    "count_words": ("Count words of a file", "path"),
    "search_text": ("Search for a text", "query"),
    "run_program": ("Run a program", "command"),
    "get_weather": ("Get the weather of a town", "town"),
}
SERVES = 0.5


def catalogue() -> Ranking:
    """Return a ranking of a few tools with short texts, because an emulated processor reads tools slowly."""
    return Ranking(spec(name) for name in TOOLS)


def spec(name: str) -> ToolSpec:
    """Return one of the tools."""
    about, parameter = TOOLS[name]
    schema = {"type": "object", "properties": {parameter: {"type": "string"}}, "required": [parameter]}
    return ToolSpec(
        name=name, server="", upstream_name=name, brief=about, full=about, input_schema=schema, risk=Risk.READ
    )


def requests(many: int) -> list[str]:
    """Return the shortest of our own requests for built-in tools."""
    texts = {row[0] for file in sorted(OWN.glob("builtin_*.json")) for row in json.loads(file.read_text())["requests"]}
    return sorted(texts, key=lambda one: (len(one), one))[:many]


def decided(request: str, ranking: Ranking) -> list[Any]:
    """Return the best-ranked tool, whether the judge accepts the tool, and its arguments; all None without a tool."""
    ranked = ranking.rank(request, 2)
    if not ranked:
        return [None, None, None]
    best = spec(ranked[0].name)
    return [best.name, judge(request, [best])[0] >= SERVES, fill_parameters(best, request).params]


if __name__ == "__main__":
    ranking = catalogue()
    json.dump([decided(one, ranking) for one in requests(int(sys.argv[1]))], sys.stdout)
