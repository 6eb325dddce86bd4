import subprocess
import sys

import pytest
from fastmcp import Client
from langchain_core.embeddings import DeterministicFakeEmbedding

from tools.builtin.servers import builtin_servers


async def tools_of(servers):
    found = {}
    for name, server in servers.items():
        async with Client(server) as client:
            found |= {f"{name}.{tool.name}": tool for tool in await client.list_tools()}
    return found


async def test_offers_the_four_tools_and_describes_every_parameter(folder):
    tools = await tools_of(builtin_servers(folder))

    assert sorted(tools) == ["ai.execute", "ai.read", "ai.write", "embedding.query"]
    for tool in tools.values():
        assert tool.description
        assert all(schema.get("description") for schema in tool.input_schema["properties"].values()), tool.name


async def test_write_and_execute_are_dry_runs_by_default(folder):
    tools = await tools_of(builtin_servers(folder))

    for name in ("ai.write", "ai.execute"):
        assert tools[name].input_schema["properties"]["dry_run"]["default"] is True


@pytest.mark.parametrize(
    ("tool", "read_only", "destructive", "idempotent", "open_world"),
    [
        ("ai.read", True, False, True, False),
        ("ai.write", False, True, False, False),
        ("ai.execute", False, True, False, True),
        ("embedding.query", True, False, True, False),
    ],
)
async def test_annotations_say_what_the_tool_does(folder, tool, read_only, destructive, idempotent, open_world):
    annotations = (await tools_of(builtin_servers(folder)))[tool].annotations

    assert annotations.read_only_hint is read_only
    assert annotations.destructive_hint is destructive
    assert annotations.idempotent_hint is idempotent
    assert annotations.open_world_hint is open_world


async def test_a_query_with_embeddings_sends_text_away(folder):
    tools = await tools_of(builtin_servers(folder, DeterministicFakeEmbedding(size=8)))

    assert tools["embedding.query"].annotations.open_world_hint is True


async def test_a_missing_working_folder_is_named(tmp_path):
    async with Client(builtin_servers(tmp_path / "gone")["ai"]) as client:
        result = await client.call_tool("read", {"path": "a.txt"}, raise_on_error=False)

    assert result.is_error
    assert "gone is not a folder" in result.content[0].text


def test_importing_the_module_loads_no_fastmcp():
    code = "import sys, tools.builtin.servers; sys.exit('fastmcp' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
