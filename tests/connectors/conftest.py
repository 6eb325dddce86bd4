from collections.abc import Iterator
from pathlib import Path

import pytest
from support.clock_server import Clock
from support.plain_server import configure, entry
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


SLOW_SERVER = """
@server.reading
async def get_weather(city):
    "Get the weather of a city."
    (folder / "pid").write_text(str(os.getpid()))
    await folder.until("may_answer")
    return f"{city}: four owls and a breeze"
"""


@pytest.fixture
def slow_weather(tmp_path: Path) -> Path:
    """An `mcp.json` with a server that answers once the file `may_answer` exists."""
    return configure(tmp_path / "mcp.json", weather=entry(SLOW_SERVER, tmp_path))
