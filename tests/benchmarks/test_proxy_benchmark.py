"""The benchmark of the proxy: it runs with FastMCP's proxy on a small data folder, and reports missing data."""

import json
import os
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from benchmarks.proxy.__main__ import _show as show
from benchmarks.proxy.__main__ import listed
from benchmarks.train.data import held_out

REPOSITORY = Path(__file__).parents[2]
FRONTS = ["packetgate", "fastmcp proxy", "fastmcp search"]
SETS = {
    "tooleyes": ("server_train", "server_test"),
    "stabletoolbench": ("train", "test"),
    "gorilla_apizoo": ("train", "test"),
    "metatool_toole": ("val", "test"),
    "livemcpbench": ("queries",),
    "sealtools": ("test_in_domain",),
}
"""Folders with a catalogue, and their files of requests."""
POOLED = ("simple_python", "multiple", "parallel", "parallel_multiple")
"""Files whose requests bring their own tools."""
READ = {
    "tooleyes": 16, "stabletoolbench": 16, "apizoo": 16, "metatool, tools held out": 8, "bfcl live": 32, "bfcl": 32,
    "livemcpbench": 8, "sealtools test": 8, "metatool test": 8, "metatool test, tools held out": 8,
}  # fmt: skip
"""By set, the requests that are read."""
THINGS = "weather recipe invoice train museum garden letter song".split()


def run(*args: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.proxy", *map(str, args)]
    environment = {name: value for name, value in os.environ.items() if name != "PACKETGATE_DATA"}
    return subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)


def rows(path: Path, *objects: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(one)}\n" for one in objects), encoding="utf-8")


def tool(server: str, thing: str, **more: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    about = f"Find the {thing} that has a name."
    return (
        {"id": f"{server}/{thing}", "server": server, "name": f"find_{thing}", "description": about}
        | more
        | {"input_schema": schema}
    )


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in the form of the data sets, with a few tools and one request for each."""
    folder = tmp_path_factory.mktemp("data")
    rows(folder / "toucan_mcp_catalog" / "tools.jsonl", *(tool("toucan", thing) for thing in THINGS))
    for name, files in SETS.items():
        ids = {thing: f"{name}/{thing}" for thing in THINGS}
        if name == "metatool_toole":
            kept = (one for one in map(str, count()) if held_out(name, one))
            ids = {thing: next(kept) for thing in THINGS}
        rows(folder / name / "tools.jsonl", *(tool(name, thing, id=ids[thing]) for thing in THINGS))
        requests = [{"query": f"find me the {thing} named Emma", "gold": [ids[thing]]} for thing in THINGS]
        if name == "livemcpbench":
            requests[4]["gold"] = ["a tool that is not there"]
        for file in files:
            rows(folder / name / f"{file}.jsonl", *requests)
    for file in (*POOLED, *(f"live_{one.removesuffix('_python')}" for one in POOLED)):
        asked = [
            {"id": thing, "query": f"find the {thing}", "gold": [f"find_{thing}"], "function": [own]}
            for thing in THINGS
            for own in [{"name": f"find_{thing}", "description": f"Find a {thing}.", "parameters": {"type": "dict"}}]
        ]
        rows(folder / "bfcl_v4" / f"{file}.jsonl", *asked)
    return folder


def test_each_proxy_and_each_data_set_is_measured(data: Path) -> None:
    done = run("--data", data, "--json")
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    fronts, sets = lines[: len(FRONTS)], lines[len(FRONTS) :]
    assert [one["name"] for one in fronts] == FRONTS
    for one in fronts:
        assert min(one["list_tokens"], one["calls_per_s"], one["memory_mb"]) > 0
        assert 0 < one["call_p50_ms"] <= one["call_p95_ms"]
    assert fronts[0]["list_tokens_in_context"] > 0
    assert {one["set"]: one["requests"] for one in sets} == READ
    assert {one["set"]: one["listed"] for one in sets} == dict.fromkeys(READ, 1.0) | {"livemcpbench": 7 / 8}


def test_a_sample_of_a_data_set_is_even_and_printed(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for figures in listed(data, most=4):
        show(figures, as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(READ)
    assert lines[0] == "set tooleyes  tools 8  requests 4  listed 1"
    assert "set livemcpbench  tools 8  requests 4  listed 0.75" in lines


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ((), "--data or PACKETGATE_DATA"),
        (("--data", "nowhere"), "nowhere"),
        (("--data", "tests"), "tests/tooleyes/tools.jsonl"),
    ],
)
def test_missing_data_is_reported(args: tuple[str, ...], told: str) -> None:
    done = run(*args)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
    assert "Traceback" not in done.stderr
