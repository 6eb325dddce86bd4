"""The benchmark of rankings: its input, its metrics, and a run. No test checks the speed, which varies by machine."""

import json
from pathlib import Path
from typing import Any

from benchmarks.ranking.__main__ import ndcg, recall
from benchmarks.ranking.data import Query, read_queries, read_tools

TOOLS: list[Any] = [
    {"id": "sky/forecast", "server": "sky", "name": "forecast", "description": "Weather of the coming days.",
     "input_schema": {"type": "object", "properties": {"city": {"type": "string", "description": "Which city."}}}},
    {"id": "sea/forecast", "server": "sea", "name": "forecast", "description": "Tides.", "input_schema": None},
    {"name": "send&mail", "description": None},
]  # fmt: skip


def write(path: Path, *rows: Any) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(json.dumps(row) for row in rows) + "\n\n", encoding="utf-8")
    return path


def test_every_form_of_a_label_is_understood(tmp_path: Path):
    tools = read_tools([write(tmp_path / "t.jsonl", *TOOLS)])
    queries = write(
        tmp_path / "q.jsonl",
        {"query": "by id", "gold": ["sea/forecast"]},
        {"query": "by name", "gold": ["forecast"]},
        {"query": "any", "gold_any": [["sky/forecast", "sea/forecast"], ["send&mail"]]},
        {"query": "one", "needs_tool": True, "tool": "send&mail"},
        {"query": "none", "needs_tool": False, "tool": None},
    )
    both = frozenset({"sky/forecast", "sea/forecast"})
    assert read_queries([queries], tools) == [
        Query("by id", (frozenset({"sea/forecast"}),)),
        Query("by name", (both,)),
        Query("any", (both, frozenset({"send&mail"}))),
        Query("one", (frozenset({"send&mail"}),)),
    ]


def test_recall_and_gain_count_each_needed_tool_once():
    query = Query("x", (frozenset({"a", "b"}), frozenset({"c"})))
    assert recall(["a"], query) == 0.5
    assert recall(["z", "b", "c"], query) == 1.0
    assert ndcg(["a", "c"], query) == ndcg(["c", "b"], query) == 1.0
    assert ndcg(["a", "b"], query) < ndcg(["a", "z", "c"], query) < 1.0
    assert ndcg([], query) == recall([], query) == 0.0
