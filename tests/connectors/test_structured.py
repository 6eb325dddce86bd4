"""Structured content and links of a result are in the answer and in the model's prompt."""

import json
import sys
from pathlib import Path

import pytest
from support import odd_server

from packetgate.connectors.opening import open_sessions
from packetgate.connectors.turn import Finished, Say, run_turn
from packetgate.graph.settings import Settings
from packetgate.state.context import RoutingContext


@pytest.mark.parametrize(
    ("tool", "shown"),
    [
        ("stock", '{"apples": 3, "pears": 12}'),
        ("price", 'failed: cannot say\n{"code": 7}'),
        ("note", "[resource Rules, note:a: The rules of the house]"),
    ],
)
async def test_structured_content_and_links_are_in_the_answer(tmp_path: Path, tool: str, shown: str):
    args = [str(Path(odd_server.__file__)), str(tmp_path / "log")]
    entry = {"command": sys.executable, "args": args, "trusted": True}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"shop": entry}}))
    settings = Settings(mcp_config=tmp_path / "mcp.json", home=tmp_path / "home", root=tmp_path)
    async with open_sessions(settings) as sessions:
        say = Say(f"Get the {tool} with shop.get_{tool}")
        *_, end = [event async for event in run_turn(sessions, say, "one", RoutingContext())]
    assert isinstance(end, Finished)
    assert shown in end.packet.response.candidate
    (field,) = end.packet.content.data_fields
    assert shown.removeprefix("failed: ") in json.loads(json.dumps(field.value["output"] or field.value["error"]))
