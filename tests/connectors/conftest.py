from pathlib import Path

import pytest
from support.plain_server import configure, entry

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
    """An `mcp.json` with a server that answers as soon as the file `may_answer` exists."""
    return configure(tmp_path / "mcp.json", weather=entry(SLOW_SERVER, tmp_path))
