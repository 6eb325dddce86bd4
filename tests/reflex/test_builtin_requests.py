"""The classifier of requests for built-in tools knows only these tools."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from support.packets import tool

from packetgate.reflex.signals import NO_TOOL, builtin_log_odds, load_request_classifier
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.toolsets.servers.opening import builtin_servers


@pytest.fixture(scope="module")
def built_in(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ToolSpec]:
    servers = builtin_servers(Path(tmp_path_factory.mktemp("files")))
    for server in servers.values():
        asyncio.run(server.connect(0))
    return {spec.name: spec for server in servers.values() for spec in server.specs}


def test_the_model_knows_exactly_the_built_in_tools(built_in: dict[str, ToolSpec]):
    known = {*load_request_classifier().tools} - {NO_TOOL}
    assert known == {*built_in}, (
        f"the classifier does not fit {', '.join(sorted(known ^ {*built_in}))}: add or remove requests in "
        "benchmarks/train/own/builtin_*.json, then run: python -m benchmarks.train.practice --held-out"
    )


@pytest.mark.parametrize(
    ("request_", "name"),
    [
        ("let me have a look at notes/garden.md", "ai.read"),
        ("put candles on the shopping list", "ai.append"),
        ("in setup.cfg replace 3.10 with 3.11", "ai.edit"),
        ("which files mention the heating?", "ai.search"),
        ("how many lines has report.txt", "ai.count"),
        ("rm old.log", "ai.delete"),
    ],
)
def test_example_requests_are_classified(request_: str, name: str, built_in: dict[str, ToolSpec]):
    likely = {one: builtin_log_odds(request_, spec) for one, spec in built_in.items()}
    assert max(likely, key=likely.__getitem__) == name
    assert likely[name] > 0


def test_a_tool_with_the_same_name_on_another_server_is_unknown(built_in: dict[str, ToolSpec]):
    spec = built_in["ai.read"]
    assert builtin_log_odds("Read a.txt", spec) > 0
    assert builtin_log_odds("Read a.txt", replace(spec, server_digest="0a1b")) == 0
    assert builtin_log_odds("Read a.txt", tool("x.read", path="string")) == 0
