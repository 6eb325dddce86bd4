"""Servers over HTTP."""

from pathlib import Path
from typing import Literal

import pytest
from support.mcp_servers import echoing, over_http

from packetgate.toolsets.servers.config import ServerConfig
from packetgate.toolsets.servers.hub import McpHub
from packetgate.toolsets.servers.opening import new_connection


@pytest.mark.parametrize(
    ("transport", "path", "entry"),
    [
        ("http", "/mcp", {}),
        ("http", "/mcp", {"transport": "http"}),
        ("sse", "/mcp", {"transport": "sse"}),
        ("sse", "/sse", {}),
    ],
)
async def test_a_server_is_reached(tmp_path: Path, transport: Literal["http", "sse"], path: str, entry: dict[str, str]):
    async with over_http(echoing("far"), transport, path) as url:
        far = new_connection(ServerConfig("far", {"url": url, **entry}), tmp_path)
        async with McpHub([far], patience_s=20) as hub:
            assert "far.echo" in await hub.catalogue(), far.problem
            assert (await hub.call("far.echo", {"text": "hi"})).output == "far says hi"


async def test_a_wrong_path_is_named(tmp_path: Path):
    async with over_http(echoing("far"), "http") as url:
        far = new_connection(ServerConfig("far", {"url": f"{url}/nowhere"}), tmp_path)
        async with McpHub([far], patience_s=20) as hub:
            assert "far.echo" not in await hub.catalogue()
            assert far.state == "failed"
            assert "Not Found" in far.problem
