"""The protocol's own conformance suite, an npm package, against the proxy."""

import asyncio
import subprocess
from functools import partial
from pathlib import Path

import pytest
from fastmcp.client.transports import FastMCPTransport
from support.conformance_server import NAME, Unprefixed, conformance_server
from support.mcp_servers import serving
from support.programs import require
from support.proxies import gateway_over, rules

from packetgate.connectors.proxy.serving import http_app
from packetgate.tools.text.result_store import ResultStore
from packetgate.toolsets.servers.config import ServerConfig
from packetgate.toolsets.servers.connection import Connection

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SUITE = ["-y", "-p", "node@22.23.3", "-p", "@modelcontextprotocol/conformance@0.1.16", "conformance", "server"]
"""The suite, with a Node version that has all functions that the suite uses."""
ALL = "Running all suite (32 scenarios)"
EXPECTED = """\
server:
  - server-sse-polling  # a recommendation: answers are not kept for a client that comes back for them
  - resources-subscribe  # FastMCP has no subscriptions
  - resources-unsubscribe  # as before
"""
"""Known failures. The suite also fails if a known failure passes."""


async def test_only_known_scenarios_fail(tmp_path: Path) -> None:
    npx, expected, home = require("npx"), tmp_path / "expected.yaml", tmp_path / "home"
    expected.write_text(EXPECTED)
    kept = ResultStore(home / "kept")  # the proxy's own store
    server = Connection(ServerConfig(NAME, {}), partial(FastMCPTransport, conformance_server()), keep=kept.keep)
    switches = {"allow_write_tools": True, "allow_execute_tools": True}  # the suite cannot answer questions
    async with gateway_over(server, home=home, preferences=rules("allow", f"{NAME}.*"), **switches) as gateway:
        gateway.hub.client_abilities.use_handshake = True
        gateway.hub.client_abilities.passed["sampling"] = {}
        await gateway.hub.catalogue()
        async with serving(Unprefixed(http_app(gateway, {}, []), NAME)) as address:
            command = [npx, *SUITE, "--url", f"{address}/mcp", "--suite", "all", "--expected-failures", str(expected)]
            done = await asyncio.to_thread(
                subprocess.run, command, cwd=tmp_path, capture_output=True, text=True, timeout=500, check=False
            )
    assert ALL in done.stdout, done.stderr
    assert done.returncode == 0, done.stdout.partition("=== SUMMARY")[2]
