from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yarl
from discord.gateway import DiscordWebSocket
from discord.http import Route
from support.discord_bots import Workshop
from support.discord_rest import API
from support.discord_server import DiscordStandIn, serve_discord


@pytest.fixture
async def discord(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[DiscordStandIn]:
    """A stand-in for Discord, to which the client connects."""
    async with serve_discord() as server:
        monkeypatch.setattr(Route, "BASE", f"{server.url}{API}")
        monkeypatch.setattr(DiscordWebSocket, "DEFAULT_GATEWAY", yarl.URL(f"{server.gateway.url}/gateway"))
        yield server


@pytest.fixture
def workshop(discord: DiscordStandIn, tmp_path: Path) -> Workshop:
    """A folder with two files and everything that a bot needs."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "plan.txt").write_text("The gate opens at seven.\n")
    (folder / "todo.txt").write_text("Buy milk.\n")
    return Workshop(discord, folder, tmp_path / "home")
