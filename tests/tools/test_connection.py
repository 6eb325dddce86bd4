"""What is made of the tools a server lists, however odd they are."""

import pytest
from fastmcp import FastMCP
from support.mcp_servers import RawTool, echoing, in_process

from state.routing import Risk
from tools.hub import McpHub


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": ["path"]},
        {"type": "object", "properties": {"dry_run": True}},
        {"type": "object", "properties": {"path": 5}, "required": 7},
        {"type": "object", "properties": {"dry_run": {"type": "boolean"}}, "required": "path"},
        {"type": "object", "properties": {"path": {"enum": 5}, "to": {"anyOf": 5}, "in": {"type": {}}}},
        {"type": "object", "required": ["dry_run", ["path"]], "properties": {"dry_run": {"type": "boolean"}}},
    ],
)
@pytest.mark.parametrize("trusted", [True, False])
async def test_a_broken_schema_takes_no_other_tool_down(schema: dict[str, object], trusted: bool):
    server = echoing("a")
    server.add_tool(RawTool(name="get_odd", description="Odd.", parameters=schema))
    async with McpHub([in_process(server, trusted=trusted), in_process(echoing("b"))]) as hub:
        catalogue = await hub.catalogue()
        assert {"a.echo", "b.echo"} <= set(catalogue)
        assert catalogue["a.get_odd"].signature()
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
