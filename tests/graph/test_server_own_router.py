"""`langgraph dev` serves a router of the user's own, with the files that docs/python.md prints."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk.client import LangGraphClient
from support.langgraph_server import ask, reply, said, serve_own_app
from support.pages import ROOT

DESK = "desk"


@pytest.mark.slow
def test_a_router_answers_under_langgraph_dev(tmp_path: Path) -> None:
    folder = tmp_path / "app"
    folder.mkdir()
    for name in ("langgraph_server.py", "garden_server.py", "mcp.json"):
        shutil.copy(ROOT / "docs" / "recipes" / name, folder)
    section = (ROOT / "docs" / "python.md").read_text().partition("\n## On a LangGraph server\n")[2]
    (config,) = re.findall(r"```json\n(.*?)```", section.partition("\n## ")[0], re.DOTALL)
    (folder / "langgraph.json").write_text(config)

    async def conversation(client: LangGraphClient) -> Any:
        thread, read = await ask(client, "List the flower beds of the garden", DESK)
        asked = await client.runs.wait(thread, DESK, input=said("Cancel order A-17"))
        done = await reply(client, thread, {"decisions": [{"type": "approve"}]}, DESK)
        _, dry = await ask(client, "Cancel order B-4", DESK, allow_write_tools=False)
        with pytest.raises(Exception, match="a command cannot update 'governance'"):
            await client.runs.wait(thread, DESK, command={"update": {"governance": {}}})
        return read, asked, done, dry

    with serve_own_app(folder) as server:
        read, asked, done, dry = server.talk(conversation)
        assert server.alarms() == []
    assert "roses" in read["messages"][-1]["content"]
    (request,) = asked["__interrupt__"][0]["value"]["action_requests"]
    assert (request["name"], request["args"]) == ("functions.cancel_order", {"order": "A-17"})
    assert "cancelled A-17" in done["messages"][-1]["content"]
    assert "Dry run" in dry["messages"][-1]["content"]
