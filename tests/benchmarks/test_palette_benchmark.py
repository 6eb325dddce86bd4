"""The benchmark of palettes: its counts, and a run. The speed is not tested, because it depends on the machine."""

from support.tool_specs import files_catalogue

from benchmarks.palette.__main__ import fastmcp_in_full, measure, packetgate
from benchmarks.ranking.data import Query

FILES = files_catalogue()
QUERIES = [
    Query("read a file", (frozenset({"files.read_file"}),)),
    Query("write a file, and do something that no tool does", (frozenset({"files.write_file"}), frozenset({"gone"}))),
]


def test_found_tools_are_counted():
    figures = measure({"packetgate": packetgate(FILES), "fastmcp": fastmcp_in_full(FILES)}, QUERIES, FILES)
    ours = figures["packetgate"].summary()
    assert (ours["on_palette"], ours["in_full"], ours["in_brief"], ours["tools_shown"]) == (0.75, 0.75, 0, 3)
    assert 0 < ours["tokens"] <= ours["most_tokens"] <= 2_000
    assert figures["fastmcp"].summary()["on_palette"] == 0.75
