"""What is made of the tools a server lists, however odd they are."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from fastmcp import FastMCP
from support.mcp_servers import RawTool, echoing, in_process

from state.routing import Risk
from tools.servers.hub import McpHub


@pytest.mark.parametrize(
    ("schema", "offered"),
    [
        ({"type": "object", "properties": ["path"]}, False),
        ({"type": "object", "properties": {"dry_run": True}}, True),
        ({"type": "object", "properties": {"path": 5}, "required": 7}, False),
        ({"type": "object", "properties": {"dry_run": {"type": "boolean"}}, "required": "path"}, True),
        ({"type": "object", "properties": {"path": {"enum": 5}, "to": {"anyOf": 5}, "in": {"type": {}}}}, False),
        ({"type": "object", "required": ["dry_run", ["path"]], "properties": {"dry_run": {"type": "boolean"}}}, True),
    ],
)
@pytest.mark.parametrize("trusted", [True, False])
async def test_a_broken_schema_takes_no_other_tool_down(schema: dict[str, object], offered: bool, trusted: bool):
    server = echoing("a")
    server.add_tool(RawTool(name="get_odd", description="Odd.", parameters=schema))
    async with McpHub([in_process(server, trusted=trusted), in_process(echoing("b"))]) as hub:
        catalogue = await hub.catalogue()
        assert {"a.echo", "b.echo"} <= set(catalogue)
        if offered:
            assert catalogue["a.get_odd"].signature()
        else:  # no call of it could be checked
            assert hub.health()[0].problem.startswith("not offered: 'get_odd': its schema is broken: ")
        assert ("a.get_odd" in catalogue) is offered
        assert (await hub.call("a.echo", {"text": "x"})).success


async def test_a_tool_that_nothing_fits_is_not_offered():
    server = echoing("a")
    never = {"type": "object", "properties": {"level": {"type": "integer", "enum": ["low"]}}, "required": ["level"]}
    server.add_tool(RawTool(name="set_level", description="Sets it.", parameters=never))
    async with McpHub([in_process(server)]) as hub:
        assert set(await hub.catalogue()) == {"a.echo"}
        problem = hub.health()[0].problem
    assert problem == (
        "not offered: 'set_level': nothing fits its schema: `level` can be none of the values that it lists"
    )


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
