"""Published servers, installed and started by `npx` and `uvx` as a user's mcp.json would."""

import json
from datetime import datetime
from pathlib import Path

import pytest
from support.programs import require

from packetgate.state.routing import Risk
from packetgate.toolsets.servers.config import load_config
from packetgate.toolsets.servers.hub import McpHub
from packetgate.toolsets.servers.opening import new_connection

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


async def test_both_servers_answer(tmp_path: Path):
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "note.txt").write_text("the kettle is blue\n")
    files = {"command": require("npx"), "args": ["-y", "@modelcontextprotocol/server-filesystem", str(folder)]}
    time = {"command": require("uvx"), "args": ["mcp-server-time"]}
    servers = {"files": {**files, "trusted": True}, "time": {**time, "trusted": True}}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    config = load_config(tmp_path / "mcp.json")
    async with McpHub([new_connection(one, tmp_path / "logs") for one in config.servers], patience_s=240) as hub:
        catalogue = await hub.catalogue()
        assert [(one.name, one.state, one.problem) for one in hub.health()] == [
            ("files", "ready", ""),
            ("time", "ready", ""),
        ]
        assert catalogue["files.read_text_file"].risk is Risk.READ
        assert catalogue["files.write_file"].risk is Risk.WRITE
        note = await hub.call("files.read_text_file", {"path": str(folder / "note.txt")})
        clock = await hub.call("time.get_current_time", {"timezone": "UTC"})
        outside = await hub.call("files.read_text_file", {"path": str(tmp_path / "mcp.json")})
    assert note.output == "the kettle is blue\n"
    assert datetime.fromisoformat(json.loads(clock.output)["datetime"]).tzinfo is not None
    assert not outside.success
    assert str(folder) in (outside.error or "")
