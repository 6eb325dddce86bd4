"""Which arguments the folder that a server was started on answers."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fastmcp import FastMCP
from fastmcp.client.transports import FastMCPTransport

from packetgate.tools.servers.connection import Connection
from packetgate.tools.servers.hub import McpHub
from packetgate.tools.spec.standing import Ground, ground_of, standing, without_standing

TOLD, STARTED = Ground("/work/shop", told=True), Ground("/work/shop", told=False)


def schema(*required: str, **properties: Any) -> dict[str, Any]:
    texts = {name: {"type": "string"} for name in required}
    return {"type": "object", "properties": {**texts, **properties}, "required": [*required]}


def test_the_folder_is_the_one_that_the_command_names(tmp_path: Path):
    (tmp_path / "shop").mkdir()
    (tmp_path / "server").mkdir()

    def ground(*args: Any, **more: Any) -> Ground | None:
        return ground_of({"command": "npx", "args": [*args], "cwd": str(tmp_path), **more})

    shop = Ground(str((tmp_path / "shop").resolve()), told=True)
    assert ground("-y", "@files/server", "./shop") == shop
    assert ground("-y", "server", f"--repository={tmp_path}/shop") == shop
    assert ground("shop/", str(tmp_path / "shop")) == shop
    assert ground(".") == Ground(str(tmp_path.resolve()), told=True)
    assert ground("server", "--verbose", "shop/nowhere", "\0/") == Ground(str(tmp_path), told=False)
    assert ground("./shop", "./server") is None, "which one is meant, nobody knows"
    assert ground_of({"url": "https://example.com/mcp"}) is None
    assert ground_of({"command": "x", "args": "./shop"}) is None


@pytest.mark.parametrize(
    ("tool", "parameters", "ground", "reads", "answered"),
    [
        ("git_status", ("repo_path",), TOLD, True, {"repo_path"}),
        ("git_commit", ("repo_path", "message"), TOLD, False, {"repo_path"}),
        ("build", ("projectRoot", "cwd", "target"), STARTED, False, {"projectRoot", "cwd"}),
        ("create_issue", ("repo", "title"), TOLD, False, set()),
        ("search_files", ("path", "pattern"), TOLD, True, {"path"}),
        ("directory_tree", ("path",), TOLD, True, {"path"}),
        ("search_files", ("path", "pattern"), STARTED, True, set()),
        ("search_and_replace", ("path", "text"), TOLD, False, set()),
        ("read_file", ("path",), TOLD, True, set()),
        ("search_path", ("search_path",), TOLD, True, set()),
        ("git_status", ("repo_path",), None, True, set()),
    ],
)
def test_what_it_answers(tool: str, parameters: Any, ground: Ground | None, reads: bool, answered: set[str]):
    assert {*standing(tool, schema(*parameters), ground, reads=reads)} == answered


@pytest.mark.parametrize("odd", [{}, {"required": "path"}, {"properties": [], "required": ["repo_path"]}])
def test_a_broken_schema_stays_as_it_is(odd: dict[str, Any]):
    assert standing("git_status", odd, TOLD, reads=True) == {}
    assert without_standing(odd, {}, TOLD) is odd


def test_a_root_that_the_command_names_is_not_offered_and_all_others_may_be_given():
    whole = schema("repo_path", "path", limit={"type": "integer"})
    assert without_standing(whole, ["repo_path", "path"], TOLD) == {
        "type": "object",
        "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}},
        "required": [],
    }
    assert without_standing(whole, ["repo_path"], STARTED) == {**whole, "required": ["path"]}


async def test_it_is_sent_with_every_call_that_gives_no_other(tmp_path: Path):
    server: FastMCP[None] = FastMCP("git")

    @server.tool
    def show_status(repo_path: str, short: bool = False) -> str:
        """Show the status of a repository."""
        return f"{repo_path} {short}"

    for told in (True, False):
        ground = Ground("/work/shop", told=told)
        transport = partial(FastMCPTransport, server)
        connection = Connection("git", transport, trusted=False, ground=partial(replace, ground))
        async with McpHub([connection]) as hub:
            spec = (await hub.catalogue())["git.show_status"]
            assert (spec.required, "repo_path" in spec.parameters) == ((), not told)
            assert (await hub.call(spec.name, {"short": True})).output == "/work/shop True"
            assert (await hub.call(spec.name, {"repo_path": "/elsewhere"})).output == "/elsewhere False"
