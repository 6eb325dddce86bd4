"""What a call tells OpenTelemetry, and the server: the trace goes on there, and FastMCP adds no spans of its own."""

from collections.abc import Iterator

import pytest
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from opentelemetry import trace
from support.mcp_servers import in_process
from support.telemetry import Telemetry, recording

from packetgate.tools.servers.hub import McpHub

SERVER: FastMCP[None] = FastMCP("traced")


@SERVER.tool
async def which_trace(context: Context) -> str:
    """Return the trace that the request belongs to."""
    assert context.request_context
    return str((context.request_context.meta or {}).get("traceparent"))


@SERVER.tool
async def fail(secret: str) -> str:
    """Fail, and say with what."""
    raise ToolError(f"{secret} is no word")


@pytest.fixture
def telemetry() -> Iterator[Telemetry]:
    """What is recorded during the test."""
    recorded = recording()
    yield recorded
    recorded.clear()


async def test_the_server_is_told_of_the_trace(telemetry: Telemetry):
    async with McpHub([in_process(SERVER, name="traced")]) as hub:
        await hub.catalogue()
        with trace.get_tracer("mine").start_as_current_span("request") as mine:
            answer = await hub.call("traced.which_trace", {})
    version, trace_id, _, sampled = answer.output.split("-")
    assert (version, int(trace_id, 16)) == ("00", mine.get_span_context().trace_id)
    assert int(sampled, 16) & 1


async def test_a_failed_calls_words_are_on_no_span(telemetry: Telemetry):
    async with McpHub([in_process(SERVER, name="traced")]) as hub:
        await hub.catalogue()
        telemetry.clear()
        answer = await hub.call("traced.fail", {"secret": "zanzibar"})
    assert answer.error
    assert "zanzibar" in answer.error
    said = [span.to_json() for span in telemetry.everyones]
    assert said
    assert [span for span in said if "zanzibar" in span] == []
