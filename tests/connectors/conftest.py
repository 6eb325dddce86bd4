from pathlib import Path

import pytest
from support.clock_server import Clock
from support.plain_server import configure, entry
from support.scripted_openai import ScriptedOpenAI
from support.turn_places import Place

from packetgate.graph.settings import Settings


@pytest.fixture
def place(scripted_openai: ScriptedOpenAI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A folder with a clock server, and a scripted model, for turns in this process."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("OPENAI_BASE_URL", scripted_openai.base_url)
    for role in ("LITE", "PRIME"):
        monkeypatch.setenv(f"PACKETGATE_{role}_ENABLE_THINKING", "false")  # so that answers come in pieces
    (root := tmp_path / "root").mkdir()
    clock = Clock(tmp_path)
    config = clock.configure(tmp_path / "mcp.json")
    settings = Settings(
        lite="openai:scripted", prime="openai:scripted", mcp_config=config, root=root, home=tmp_path / "home"
    )
    clock.begin()
    return Place(settings, scripted_openai, clock, root)


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
