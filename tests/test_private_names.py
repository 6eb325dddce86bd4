"""Private names of libraries work as `private_names.py` expects. Ruff's SLF001 allows them only in this file."""

import subprocess
import sys
from typing import Any

import pytest
from fastmcp import Client, Context, FastMCP
from langgraph._internal import _constants
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.pregel._messages import StreamMessagesHandler
from langgraph.runtime import ExecutionInfo
from mcp.server.connection import Connection

from packetgate.state import private_names
from packetgate.state.packet import checkpoint_types
from packetgate.state.private_names import allow_checkpoint_types, connection_of
from packetgate.state.sections import Header


def test_langgraph_has_these_names() -> None:
    assert private_names.STRICT_RESUME == _constants.CONFIG_KEY_STRICT_RESUME
    assert {_constants.ERROR, _constants.ERROR_SOURCE_NODE} == private_names.ERROR_WRITES
    assert private_names.is_nested({_constants.CONFIG_KEY_READ: print})
    assert not private_names.is_nested({_constants.CONFIG_KEY_READ: "from a client"})
    assert private_names.checkpointer_of({"configurable": {_constants.CONFIG_KEY_CHECKPOINTER: 1}}) == 1
    assert private_names.CHECKPOINTER == _constants.CONFIG_KEY_CHECKPOINTER
    nested = ExecutionInfo("", f"route:1{_constants.NS_SEP}ask_user:2", "")
    assert private_names.runs_in_parent(nested)
    assert private_names.is_streaming_handler(StreamMessagesHandler(print, subgraphs=True))


def test_other_serializers_restore_our_types() -> None:
    allow_checkpoint_types(checkpoint_types())
    strict = JsonPlusSerializer(allowed_msgpack_modules=None)
    header = Header()
    assert strict.loads_typed(JsonPlusSerializer().dumps_typed(header)) == header


def test_the_state_of_the_environment_changes_with_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    before = private_names.environment_state()
    assert private_names.environment_state() == before
    monkeypatch.setenv("PACKETGATE_ANY", "1")
    assert private_names.environment_state() != before


def test_a_registered_call_runs_before_threads_are_joined() -> None:
    program = """
import threading
from packetgate.state.private_names import call_before_threads_end
end = threading.Event()
call_before_threads_end(end.set)
threading.Thread(target=end.wait).start()
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


async def test_a_fastmcp_server_gives_its_connection_and_accepts_a_method() -> None:
    server: FastMCP[Any] = FastMCP("server")

    @server.tool
    async def look(context: Context) -> str:
        connection = connection_of(context.session)
        assert isinstance(connection, Connection)
        assert connection.initialized.is_set()
        seen.append(connection)
        return ""

    seen: list[Connection] = []
    async with Client(server, mode="legacy") as client:
        assert client.session.server_capabilities is not None
        await client.call_tool("look")
        await client.call_tool("look")
    assert seen[0] is seen[1], "one client, one connection"
