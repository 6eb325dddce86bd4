"""A failure is reported, and does not affect other calls and servers."""

import sys

from fastmcp.client.transports import StdioTransport
from support.graphs import run_once
from support.notebook import Notebook
from support.scripted_deciders import call, scripted

from packetgate.toolsets.servers.config import ServerConfig
from packetgate.toolsets.servers.connection import Connection


def gone(name: str = "gone") -> Connection:
    """Return a server whose program exits at once."""
    return Connection(
        ServerConfig(name, {}), lambda: StdioTransport(sys.executable, ["-c", "raise SystemExit('no key')"])
    )


async def test_a_dead_server_is_named_and_the_others_answer(notebook: Notebook):
    packet = await run_once(scripted(call("notebook.read_note", name="a")), "Read a", notebook, gone())
    assert "apples" in packet.response.candidate
    assert "Some servers are not available: gone: " in packet.response.candidate
    health = {one.name: one.state for one in packet.context.servers}
    assert health == {"gone": "failed", "notebook": "ready"}
    assert packet.metrics.errors[0].stage == "build_palette"
    assert packet.metrics.errors[0].message.startswith("gone: ")
