"""What is made of the tools a server lists, however odd they are."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from fastmcp import FastMCP
from support.mcp_servers import RawTool, echoing, in_process

from packetgate.state.routing import Risk
from packetgate.tools.servers.hub import McpHub


@pytest.mark.parametrize(
    ("schema", "changed"),
    [
        ({"type": "object", "properties": ["path"]}, "the arguments: properties left out"),
        ({"type": "object", "properties": {"dry_run": True}}, ""),
        (
            {"type": "object", "properties": {"path": 5}, "required": 7},
            "path: its schema left out (it is none); the arg",
        ),
        (
            {"type": "object", "properties": {"dry_run": {"type": "boolean"}}, "required": "path"},
            "the arguments: requir",
        ),
        (
            {"type": "object", "properties": {"path": {"enum": 5}, "to": {"anyOf": 5}, "in": {"type": {}}}},
            "path: enum left out (5); to: anyOf left out",
        ),
        (
            {"type": "object", "required": ["go", ["path"]], "properties": {"go": {"type": "BOOLEAN"}}},
            "",
        ),
        ({"type": "object", "properties": {"path": {"type": "strong"}}}, 'path: type left out ("strong")'),
    ],
)
@pytest.mark.parametrize("trusted", [True, False])
async def test_what_cannot_be_used_of_a_schema_is_left_out_and_told(
    schema: dict[str, object], changed: str, trusted: bool
):
    server = echoing("a")
    server.add_tool(RawTool(name="get_odd", description="Odd.", parameters=schema))
    async with McpHub([in_process(server, trusted=trusted), in_process(echoing("b"))]) as hub:
        catalogue = await hub.catalogue()
        assert {"a.echo", "b.echo"} <= set(catalogue)
        assert catalogue["a.get_odd"].signature()
        assert hub.health()[0].problem == ""
        assert [line[: len(changed) + 11] for line in hub.notes().get("a", ())] == (
            [f"'get_odd': {changed}"] if changed else []
        )
        assert (await hub.call("a.echo", {"text": "x"})).success


async def test_only_a_trusted_servers_dry_run_is_the_gates_own():
    server: FastMCP[None] = FastMCP("a")

    @server.tool
    def write_it(text: str, dry_run: bool) -> str:
        """Write it."""
        return f"{text} {dry_run}"

    for trusted in (True, False):
        async with McpHub([in_process(server, trusted=trusted)]) as hub:
            spec = (await hub.catalogue())["a.write_it"]
            assert spec.has_dry_run is trusted
            assert ("dry_run" in spec.parameters) is not trusted
            assert ("dry_run" in spec.required) is not trusted


async def test_annotations_reach_the_risk():
    server: FastMCP[None] = FastMCP("a")

    @server.tool(annotations={"readOnlyHint": True})
    def frobnicate() -> str:
        """Do something."""
        return ""

    async with McpHub([in_process(server, trusted=True), in_process(server, name="b")]) as hub:
        catalogue = await hub.catalogue()
        assert catalogue["a.frobnicate"].risk is Risk.READ
        assert catalogue["b.frobnicate"].risk is Risk.WRITE


async def test_tags_and_what_reaches_outside_come_from_real_servers():
    server: FastMCP[None] = FastMCP("a")

    @server.tool(tags={"garden", "Tasks"}, annotations={"openWorldHint": False})
    def fetch_page() -> str:
        """Fetch a web page from the store room."""
        return ""

    @server.tool(annotations={"openWorldHint": True})
    def list_notes() -> str:
        """List notes."""
        return ""

    @server.tool(meta={"tags": ["own", 5]})
    def search_web() -> str:
        """Search the web."""
        return ""

    async with McpHub([in_process(server)]) as hub:
        catalogue = await hub.catalogue()
    page, notes, web = (catalogue[f"a.{name}"] for name in ("fetch_page", "list_notes", "search_web"))
    assert (page.tags, page.open_world, page.is_external) == (("Tasks", "garden"), False, False)
    assert (notes.tags, notes.open_world, notes.is_external) == ((), True, True)
    assert (web.tags, web.open_world, web.is_external) == (("own",), None, True)
    assert catalogue.pool("garden") == ("a.fetch_page",)


@pytest.mark.parametrize(
    "meta", [{"tags": "garden"}, {"tags": {"garden": 1}}, {"fastmcp": {"tags": 5}}, {"tags": None}]
)
async def test_odd_metadata_is_no_tags(meta: dict[str, object]):
    server = echoing("a")
    server.add_tool(RawTool(name="get_odd", description="Odd.", parameters={"type": "object"}, meta=meta))
    async with McpHub([in_process(server)]) as hub:
        assert (await hub.catalogue())["a.get_odd"].tags == ()


async def test_a_start_that_was_stopped_is_tried_again():
    begun, may_start = asyncio.Event(), asyncio.Event()

    @asynccontextmanager
    async def slow(_server: object) -> AsyncIterator[None]:
        begun.set()
        await may_start.wait()
        yield

    server: FastMCP[None] = FastMCP("a", lifespan=slow)
    server.tool(lambda: "yes", name="get_yes")
    connection = in_process(server)
    start = asyncio.create_task(connection.connect(0))
    await begun.wait()
    start.cancel()
    await asyncio.wait([start])
    assert (connection.state, connection.may_retry) == ("failed", True)
    may_start.set()
    await connection.connect(connection.session)
    assert (connection.state, len(connection.specs)) == ("ready", 1)
    await connection.close()
