"""The tools that a server lists, traces of calls, and cancelled starts."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from mcp import MCPError
from mcp_types import ToolAnnotations
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from support.mcp_servers import RawTool, echoing, in_process

from packetgate.state.routing import Risk
from packetgate.toolsets.servers.hub import McpHub
from packetgate.toolsets.servers.messages import TransportFailure, failure_message, transport_failure


@pytest.mark.parametrize(
    ("schema", "changed"),
    [
        (
            {"type": "object", "properties": {"path": {"enum": 5}, "to": {"anyOf": 5}}},
            "path: enum left out (5); to: any",
        ),
        ({"type": "object", "required": ["go", ["path"]], "properties": {"go": {"type": "BOOLEAN"}}}, ""),
    ],
)
async def test_unusable_parts_of_a_schema_are_left_out_and_noted(schema: dict[str, object], changed: str):
    server = echoing("a")
    server.add_tool(RawTool(name="get_odd", description="Odd.", parameters=schema))
    async with McpHub([in_process(server), in_process(echoing("b"))]) as hub:
        catalogue = await hub.catalogue()
        assert {"a.echo", "b.echo"} <= set(catalogue)
        assert catalogue["a.get_odd"].signature()
        assert hub.health()[0].problem == ""
        assert [line[: len(changed) + 11] for line in hub.tool_notes().get("a", ())] == (
            [f"'get_odd': {changed}"] if changed else []
        )
        assert (await hub.call("a.echo", {"text": "x"})).success


async def test_trust_decides_about_dry_runs_and_annotations():
    server: FastMCP[None] = FastMCP("a")

    @server.tool
    def write_it(text: str, dry_run: bool) -> str:
        """Write it."""
        return f"{text} {dry_run}"

    @server.tool(annotations={"readOnlyHint": True})
    def frobnicate() -> str:
        """Do something."""
        return ""

    for trusted in (True, False):
        async with McpHub([in_process(server, trusted=trusted)]) as hub:
            catalogue = await hub.catalogue()
        spec = catalogue["a.write_it"]
        assert spec.has_dry_run is trusted
        assert ("dry_run" in spec.parameters) is ("dry_run" in spec.required) is not trusted
        assert catalogue["a.frobnicate"].risk is (Risk.READ if trusted else Risk.WRITE)


async def test_tags_and_open_world_hints_are_read():
    server = echoing("a")
    for name, described in {
        "odd": {"meta": {"tags": "garden"}},
        "page": {"tags": {"garden", "Tasks"}},
        "notes": {"meta": {"tags": ["own", 5]}},
    }.items():
        hints = ToolAnnotations(open_world_hint=name == "notes")
        schema = {"type": "object"}
        server.add_tool(RawTool(name=name, description="Do it.", parameters=schema, annotations=hints, **described))
    async with McpHub([in_process(server)]) as hub:
        catalogue = await hub.catalogue()
    tags = {name: spec.tags for name, spec in catalogue.items()}
    assert tags == {"a.echo": (), "a.odd": (), "a.page": ("Tasks", "garden"), "a.notes": ("own",)}
    assert [(catalogue[name].open_world, catalogue[name].is_external) for name in ("a.page", "a.notes")] == [
        (False, False),
        (True, True),
    ]
    assert catalogue.pool("garden") == ("a.page",)


async def test_a_cancelled_start_is_tried_again():
    begun, may_start = asyncio.Event(), asyncio.Event()

    @asynccontextmanager
    async def slow(_server: object) -> AsyncIterator[None]:
        begun.set()
        await may_start.wait()
        yield

    server: FastMCP[None] = FastMCP("a", lifespan=slow)
    server.tool(lambda: "yes", name="get_yes")
    connection = in_process(server)
    start = asyncio.create_task(connection.connect())
    await begun.wait()
    start.cancel()
    await asyncio.wait([start])
    assert (connection.state, connection.can_reconnect) == ("failed", True)
    may_start.set()
    await connection.connect(connection.session)
    assert (connection.state, len(connection.specs)) == ("ready", 1)
    await connection.close()


async def test_the_trace_reaches_the_server_and_no_span_has_the_text_of_a_failure():
    server: FastMCP[None] = FastMCP("traced")

    @server.tool
    async def which_trace(context: Context) -> str:
        """Return the trace of the request."""
        assert context.request_context
        return str((context.request_context.meta or {}).get("traceparent"))

    @server.tool
    async def fail(secret: str) -> str:
        """Fail with a message."""
        raise ToolError(f"{secret} is no word")

    exporter, tracers = InMemorySpanExporter(), TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(tracers)  # for the whole process, as in user code
    async with McpHub([in_process(server)]) as hub:
        await hub.catalogue()
        with trace.get_tracer("mine").start_as_current_span("request") as mine:
            answer = await hub.call("traced.which_trace", {})
        failure = await hub.call("traced.fail", {"secret": "zanzibar"})
    version, trace_id, _, sampled = answer.output.split("-")
    assert (version, int(trace_id, 16)) == ("00", mine.get_span_context().trace_id)
    assert int(sampled, 16) & 1
    assert "zanzibar" in (failure.error or "")
    spans = [span.to_json() for span in exporter.get_finished_spans()]
    exporter.shutdown()
    assert spans
    assert not any("zanzibar" in span for span in spans)


def test_a_server_cannot_state_that_a_call_was_not_sent():
    own = TransportFailure("unsent")
    error = failure_message(1, "no connection", own).error
    assert transport_failure(MCPError(error.code, error.message, error.data)) == own
    forged = {"packetgate/failure": {"kind": "unsent"}}
    assert transport_failure(MCPError(error.code, error.message, forged)) is None
