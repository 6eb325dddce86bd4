"""Servers over HTTP, by whichever way they answer."""

from pathlib import Path
from typing import Any, Literal

import pytest
from support.mcp_servers import echoing, over_http

from packetgate.tools.servers.config import ServerConfig
from packetgate.tools.servers.hub import McpHub
from packetgate.tools.servers.starting import configured


@pytest.mark.parametrize(
    ("speaks", "path", "entry"),
    [
        ("http", "/mcp", {}),
        ("http", "/mcp", {"transport": "http"}),
        ("sse", "/mcp", {}),
        ("sse", "/mcp", {"transport": "http"}),
        ("sse", "/mcp", {"transport": "sse"}),
        ("sse", "/sse", {}),
    ],
)
async def test_a_server_is_reached_by_the_way_that_it_speaks(
    tmp_path: Path, speaks: Literal["http", "sse"], path: str, entry: dict[str, Any]
):
    async with over_http(echoing("far"), speaks, path) as url:
        far = configured(ServerConfig("far", {"url": url, **entry}), tmp_path)
        async with McpHub([far], patience_s=20) as hub:
            assert "far.echo" in await hub.catalogue(), far.problem
            assert (await hub.call("far.echo", {"text": "hi"})).output == "far says hi"


async def test_where_no_way_leads_to_a_server_the_first_one_says_why(tmp_path: Path):
    async with over_http(echoing("far"), "http") as url:
        far = configured(ServerConfig("far", {"url": f"{url}/nowhere"}), tmp_path)
        async with McpHub([far], patience_s=20) as hub:
            assert "far.echo" not in await hub.catalogue()
            assert far.state == "failed"
            assert "Not Found" in far.problem
