"""Faults of third-party servers: the turn ends and names the fault, and other servers still answer."""

import asyncio
import json
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.faulty_server import FAULTS, entry

from packetgate.connectors.opening import open_sessions
from packetgate.connectors.sessions import Sessions
from packetgate.connectors.turn import Finished, Say, run_turn
from packetgate.graph.settings import Settings
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket
from packetgate.state.transitions import ToolExecutionStatus

pytestmark = pytest.mark.slow

WAYS = ("stdio", "http")
MAX_GROWTH_KB = 600_000
"""Most that one fault may add to this process's peak memory."""
TIMEOUT_MS = 5_000
LONG_MS = 60_000
"""For the faults that end by their size, however slow the machine."""

SAYS = {
    ("dead at start", "stdio"): "Connection closed",
    ("dead at start", "http"): "connection attempts failed",
    ("dies in the call", "stdio"): "disconnected during the call",
    ("dies in the call", "http"): "the answer is not JSON-RPC: HTTP 200 OK",
    ("floods", "stdio"): "it wrote a line of more than 32 MB",
    ("floods", "http"): "gave no usable answer: the answer has more than 32 MB",
    ("100 MB", "stdio"): "it wrote a line of more than 32 MB",
    ("100 MB", "http"): "gave no usable answer: the answer has more than 32 MB",
    ("garbage", "http"): "the answer is not JSON-RPC: HTTP 200 OK: ",
    ("refuses at length", "stdio"): "busy busy",
    ("refuses at length", "http"): "busy busy",
}
"""Of the others: that no answer came in time."""
READ = {"changes tools", "breaks its schema"}
"""Faults in spite of which the answer is read."""


@contextmanager
def served(fault: str, way: str, folder: Path) -> Iterator[dict[str, object]]:
    """Yield the entry of `mcp.json` for a server with a fault."""
    timeout_ms = LONG_MS if fault in {"floods", "100 MB"} else TIMEOUT_MS
    if way == "stdio":
        command, *arguments = entry(fault)
        yield {"command": command, "args": arguments, "timeout": timeout_ms, "trusted": True}
        return
    port_file = folder / "port"
    with subprocess.Popen(entry(fault, port_file), stderr=subprocess.DEVNULL) as process:
        try:
            while not port_file.exists() and process.poll() is None:
                pass
            port = port_file.read_text() if port_file.exists() else "9"
            yield {"url": f"http://127.0.0.1:{port}/mcp", "timeout": timeout_ms, "trusted": True}
        finally:
            process.kill()


async def turn(sessions: Sessions, name: str, words: str) -> CognitionPacket:
    end = [event async for event in run_turn(sessions, Say(words), name, RoutingContext())][-1]
    assert isinstance(end, Finished), end
    return end.packet


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_ends_in_time_with_a_typed_error_and_affects_no_other_server(
    fault, way, tmp_path, record_property
):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    good, *arguments = entry("none")
    with served(fault, way, tmp_path) as bad:
        servers = {"bad": bad, "good": {"command": good, "args": arguments, "trusted": True}}
        (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
        settings = Settings(mcp_config=tmp_path / "mcp.json", home=tmp_path / "home", root=tmp_path)
        async with open_sessions(settings) as sessions:
            one = asyncio.create_task(turn(sessions, "one", "Get the ledger with bad.get_ledger"))
            other = await turn(sessions, "other", "Get the report with good.get_report")
            packet = await asyncio.wait_for(one, 120)
            again = await turn(sessions, "other", "Get the report with good.get_report once more")
    for well in (other, again):
        assert [call.status for call in well.tool_routing.all_calls] == [ToolExecutionStatus.EXECUTED]
        assert "the report of none" in well.response.candidate
    calls = packet.tool_routing.all_calls if packet.tool_routing else ()
    health = next(server for server in packet.context.servers if server.name == "bad")
    if fault in READ:
        assert [call.status for call in calls] == [ToolExecutionStatus.EXECUTED]
        said = "executed"
    elif fault == "dead at start":
        assert health.state == "failed"
        assert not [call for call in calls if call.tool_name.startswith("bad.")]
        said = health.problem
    else:
        assert [call.status for call in calls] == [ToolExecutionStatus.FAILED], packet.tool_routing
        said = calls[0].result.error or ""
    assert len(said) < 101_000
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    record_property("fault", f"{fault}, {way}: {said}; {grown:,} kB more at the peak")
    print(f"{fault}, {way}: {said}; peak +{grown:,} kB")  # noqa: T201
    if fault not in READ:
        assert SAYS.get((fault, way), "gave no answer within 5 s") in said
    assert grown < MAX_GROWTH_KB
