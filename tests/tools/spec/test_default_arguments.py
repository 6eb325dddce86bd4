"""Arguments that default to the folder of the server."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fastmcp import FastMCP
from fastmcp.client.transports import FastMCPTransport

from packetgate.tools.spec.default_arguments import (
    ServerFolder,
    default_arguments,
    server_folder,
    without_default_arguments,
)
from packetgate.toolsets.servers.config import ServerConfig
from packetgate.toolsets.servers.connection import Connection
from packetgate.toolsets.servers.hub import McpHub

NAMED, STARTED = ServerFolder("/work/shop", is_named=True), ServerFolder("/work/shop", is_named=False)


def schema(*required: str, **properties: Any) -> dict[str, Any]:
    texts = {name: {"type": "string"} for name in required}
    return {"type": "object", "properties": {**texts, **properties}, "required": [*required]}


def test_the_command_names_the_folder(tmp_path: Path):
    (tmp_path / "shop").mkdir()
    (tmp_path / "server").mkdir()

    def ground(*args: Any, **more: Any) -> ServerFolder | None:
        return server_folder({"command": "npx", "args": [*args], "cwd": str(tmp_path), **more})

    shop = ServerFolder(str((tmp_path / "shop").resolve()), is_named=True)
    assert ground("-y", "@files/server", "./shop") == shop
    assert ground("-y", "server", f"--repository={tmp_path}/shop") == shop
    assert ground("shop/", str(tmp_path / "shop")) == shop
    assert ground(".") == ServerFolder(str(tmp_path.resolve()), is_named=True)
    assert ground("server", "--verbose", "shop/nowhere", "\0/") == ServerFolder(str(tmp_path), is_named=False)
    assert ground("./shop", "./server") is None
    assert server_folder({"url": "https://example.com/mcp"}) is None
    assert server_folder({"command": "x", "args": "./shop"}) is None


@pytest.mark.parametrize(
    ("tool", "parameters", "ground", "reads", "defaults"),
    [
        ("git_status", ("repo_path",), NAMED, True, {"repo_path"}),
        ("git_commit", ("repo_path", "message"), NAMED, False, {"repo_path"}),
        ("build", ("projectRoot", "cwd", "target"), STARTED, False, {"projectRoot", "cwd"}),
        ("create_issue", ("repo", "title"), NAMED, False, set()),
        ("search_files", ("path", "pattern"), NAMED, True, {"path"}),
        ("directory_tree", ("path",), NAMED, True, {"path"}),
        ("search_files", ("path", "pattern"), STARTED, True, set()),
        ("search_and_replace", ("path", "text"), NAMED, False, set()),
        ("read_file", ("path",), NAMED, True, set()),
        ("search_path", ("search_path",), NAMED, True, set()),
        ("git_status", ("repo_path",), None, True, set()),
    ],
)
def test_folder_arguments_default_to_the_servers_folder(
    tool: str, parameters: Any, ground: ServerFolder | None, reads: bool, defaults: set[str]
):
    assert {*default_arguments(tool, schema(*parameters), ground, reads=reads)} == defaults


@pytest.mark.parametrize("odd", [{}, {"required": "path"}, {"properties": [], "required": ["repo_path"]}])
def test_a_broken_schema_is_unchanged(odd: dict[str, Any]):
    assert default_arguments("git_status", odd, NAMED, reads=True) == {}
    assert without_default_arguments(odd, {}, NAMED) is odd


def test_a_root_named_by_the_command_is_hidden_and_other_defaults_are_optional():
    full = schema("repo_path", "path", limit={"type": "integer"})
    assert without_default_arguments(full, ["repo_path", "path"], NAMED) == {
        "type": "object",
        "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}},
        "required": [],
    }
    assert without_default_arguments(full, ["repo_path"], STARTED) == {**full, "required": ["path"]}


async def test_a_default_is_sent_unless_the_call_gives_another(tmp_path: Path):
    server: FastMCP[None] = FastMCP("git")

    @server.tool
    def show_status(repo_path: str, short: bool = False) -> str:
        """Show the status of a repository."""
        return f"{repo_path} {short}"

    folder = str(tmp_path)
    for is_named, entry in ((True, {"args": [folder]}), (False, {"cwd": folder})):
        config = ServerConfig("git", {"command": "git", **entry})
        async with McpHub([Connection(config, partial(FastMCPTransport, server))]) as hub:
            spec = (await hub.catalogue())["git.show_status"]
            assert (spec.required, "repo_path" in spec.parameters) == ((), not is_named)
            assert (await hub.call(spec.name, {"short": True})).output == f"{folder} True"
            assert (await hub.call(spec.name, {"repo_path": "/elsewhere"})).output == "/elsewhere False"
