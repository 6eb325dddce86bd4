import pytest
from support.builtin_tools import ALL, READS, WRITES

from packetgate.state.routing import Risk
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.toolsets.builtin.undo_store import UndoStore
from packetgate.toolsets.servers.opening import builtin_servers


async def tools_of(servers) -> dict[str, ToolSpec]:
    for server in servers.values():
        await server.connect(old_session=0)
    return {spec.name: spec for server in servers.values() for spec in server.specs}


async def test_all_tools_are_described_with_their_risk_reach_and_dry_run(folder, tmp_path):
    tools = await tools_of(builtin_servers(folder, undo=UndoStore(tmp_path / "undo.db")))
    assert sorted(tools) == ALL
    for name, tool in tools.items():
        assert tool.full
        assert tool.brief
        assert all(schema.get("description") for schema in tool.parameters.values()), name
        risk = Risk.READ if name in READS else Risk.WRITE if name in WRITES else Risk.EXECUTE
        assert (tool.risk, tool.has_dry_run, tool.is_external) == (risk, risk is not Risk.READ, name == "ai.execute")


@pytest.mark.parametrize(
    ("params", "message"),
    [({"path": 5}, "path"), ({"path": "a.txt", "first_line": 0}, "first_line"), ({"path": "a.txt", "to": "b"}, "to")],
)
async def test_invalid_arguments_are_named(call, params, message):
    result = await call("ai.read", **params)

    assert result.error is not None
    assert result.error.splitlines()[1] == message


async def test_a_missing_working_folder_is_named(tmp_path):
    result = await builtin_servers(tmp_path / "gone")["ai"].call("read", {"path": "a.txt"})

    assert result.error is not None
    assert "gone is not a folder" in result.error
