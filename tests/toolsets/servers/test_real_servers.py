"""Published servers, installed and started by `npx` and `uvx` as a user's mcp.json would."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.programs import require

from packetgate.state.routing import Risk
from packetgate.toolsets.servers.config import load_config
from packetgate.toolsets.servers.hub import McpHub
from packetgate.toolsets.servers.opening import new_connection

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "files"
    folder.mkdir()
    (folder / "note.txt").write_text("the kettle is blue\n")
    return folder


@pytest.fixture
async def hub(folder: Path, tmp_path: Path) -> AsyncIterator[McpHub]:
    """Both servers are trusted, so that a read that was sent to a dead server is retried."""
    files = {"command": require("npx"), "args": ["-y", "@modelcontextprotocol/server-filesystem", str(folder)]}
    time = {"command": require("uvx"), "args": ["mcp-server-time"]}
    servers = {"files": {**files, "trusted": True}, "time": {**time, "trusted": True}}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    config = load_config(tmp_path / "mcp.json")
    async with McpHub([new_connection(one, tmp_path / "logs") for one in config.servers], patience_s=240) as hub:
        yield hub


async def tells_the_time(hub: McpHub) -> bool:
    before = datetime.now(UTC).replace(microsecond=0)
    result = await hub.call("time.get_current_time", {"timezone": "UTC"})
    assert result.success, result.error
    return before <= datetime.fromisoformat(json.loads(result.output)["datetime"]) <= datetime.now(UTC)


async def reads_the_note(hub: McpHub, folder: Path) -> bool:
    result = await hub.call("files.read_text_file", {"path": str(folder / "note.txt")})
    return result.output == "the kettle is blue\n"


async def test_both_servers_answer(hub: McpHub, folder: Path):
    catalogue = await hub.catalogue()
    assert [(one.name, one.state, one.problem) for one in hub.health()] == [
        ("files", "ready", ""),
        ("time", "ready", ""),
    ]
    assert catalogue["files.read_text_file"].risk is Risk.READ
    assert catalogue["files.write_file"].risk is Risk.WRITE
    assert await reads_the_note(hub, folder)
    assert await tells_the_time(hub)
    result = await hub.call("files.read_text_file", {"path": str(folder.parent / "mcp.json")})
    assert not result.success
    assert str(folder) in (result.error or "")
