import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import plain_server
from support.clock_server import Clock
from support.scripted_openai import ScriptedOpenAI
from support.turn_places import Place

from packetgate.graph.settings import Settings


@pytest.fixture(params=["local", pytest.param("remote", marks=pytest.mark.slow)])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """Where turns run: in this process, and on a LangGraph server."""
    if request.param == "remote":
        server, model = request.getfixturevalue("langgraph_server_with_model")
        made = Place(Settings(url=server.url), model, server.clock, server.root)
        for file in made.root.iterdir():  # of an earlier test on the same server
            file.unlink()
    else:
        made = _here(request.getfixturevalue("scripted_openai"), tmp_path, monkeypatch)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    made.clock.begin()
    yield made
    made.model.script()


def _here(model: ScriptedOpenAI, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("OPENAI_BASE_URL", model.base_url)
    for role in ("LITE", "PRIME"):
        monkeypatch.setenv(f"PACKETGATE_{role}_ENABLE_THINKING", "false")  # so that answers come in pieces
    (root := folder / "root").mkdir()
    clock = Clock(folder)
    config = clock.configure(folder / "mcp.json")
    settings = Settings(
        lite="openai:scripted", prime="openai:scripted", mcp_config=config, root=root, home=folder / "home"
    )
    return Place(settings, model, clock, root)


SLOW_SERVER = f"""
import asyncio, os, pathlib, sys
sys.path[0] = {str(Path(plain_server.__file__).parent)!r}
from plain_server import PlainServer
folder = pathlib.Path(sys.argv[1])
server = PlainServer("weather")
@server.reading
async def get_weather(city):
    "Get the weather of a city."
    (folder / "pid").write_text(str(os.getpid()))
    while not (folder / "may_answer").exists():
        await asyncio.sleep(0.01)
    return f"{{city}}: four owls and a breeze"
server.run()
"""


@pytest.fixture
def slow_weather(tmp_path: Path) -> Path:
    """An `mcp.json` with a server that answers once the file `may_answer` exists."""
    file = tmp_path / "mcp.json"
    entry = {"command": sys.executable, "sandbox": "off", "args": ["-c", SLOW_SERVER, str(tmp_path)], "trusted": True}
    file.write_text(json.dumps({"mcpServers": {"weather": entry}}))
    return file
