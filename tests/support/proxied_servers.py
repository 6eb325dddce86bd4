"""Servers behind a proxy that misbehave, and one beside them that is well."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from fastmcp.tools.base import ToolResult
from support.mcp_servers import RawTool, echoing, in_process
from support.proxies import Era, Make, Talk, served, talking
from support.vouching import worded

from packetgate.connectors.clients import ProxyConfig
from packetgate.connectors.proxy.gateway import Gateway
from packetgate.connectors.proxy.serving import gateway_to
from packetgate.graph.settings import Settings
from packetgate.state.context import RoutingContext
from packetgate.tools.catalogue.preferences import Policy, Preferences
from packetgate.tools.policy.rules import Rule
from packetgate.tools.servers.connection import Connection
from packetgate.tools.servers.hub import McpHub

each_client = pytest.mark.parametrize(("make", "era"), [("sdk", "legacy"), ("fastmcp", "2026-07-28")])
"""Where it is enough that both makes and both protocols are there."""
HIDDEN = ("\x1b", "\x07", "\u202e")
"""What steers a terminal, or turns its letters around."""


@asynccontextmanager
async def proxied(
    home: Path,
    *servers: Connection,
    preferences: Preferences | None = None,
    vouched: bool = True,
    patience_s: float = 20,
    **switches: bool,
) -> AsyncIterator[tuple[Gateway, str]]:
    """Serve a proxy in front of servers, and yield its gateway and its address."""
    async with (
        McpHub(servers, preferences=worded(preferences) if vouched else preferences) as hub,
        gateway_to(
            hub, Settings(home=home, patience_s=20), ProxyConfig(), RoutingContext.model_validate(switches)
        ) as gateway,
        served(gateway) as address,
    ):
        yield gateway, f"{address}/mcp"


def other() -> Connection:
    """Return a server that is well."""
    return in_process(echoing("other"))


async def others_answer(talk: Talk) -> bool:
    said = await talk.call("call_read_tool", name="other.echo", arguments={"text": "x"})
    return (said.is_error, said.text) == (False, "other says x")


async def names_now(url: str, make: Make, era: Era) -> set[str]:
    """Return the list as a client gets it that connects now: others may hold theirs to be fresh."""
    async with talking(url, make, era) as talk:
        return await talk.names()


def rules(effect: str, tool: str) -> Preferences:
    return Preferences(policy=Policy(rules=[Rule.model_validate({"effect": effect, "tool": tool})]))


class Noting(RawTool):
    """A tool that notes that it was run."""

    ran: Any
    says: Any = "done"

    async def run(self, arguments: dict[str, Any]) -> Any:
        self.ran.append(self.name)
        return self.says if isinstance(self.says, ToolResult) else self.convert_result(self.says)
