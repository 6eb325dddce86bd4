"""A changed `packetgate.toml` changes the rights, status line and models of a running bot."""

from typing import Any

import pytest
from support.discord_bots import ADA_ALONE, Workshop
from support.discord_payloads import ADA, ADAS, BEN, BOT, LOBBY
from support.discord_server import DiscordStandIn
from support.pictures import NO_TOOL
from support.scripted_openai import ScriptedOpenAI

from packetgate.connectors.discord.bot import NOT_ALLOWED
from packetgate.connectors.discord.config import KEPT
from packetgate.connectors.discord.models import NO_MODEL, NOT_AN_OWNER

MILK = "Buy milk."
BOTH: dict[str, Any] = {"allowed": {"users": [ADA, BEN]}, "owners": {"users": [ADA]}}


@pytest.fixture
def local_models(scripted_openai: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch) -> ScriptedOpenAI:
    """Two models on a server."""
    monkeypatch.setenv("OPENAI_BASE_URL", scripted_openai.base_url)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    scripted_openai.models = ["first", "second"]
    return scripted_openai


async def is_ignored(discord: DiscordStandIn, who: int) -> bool:
    """Whether the bot ignores a request. A later command shows that the bot has read the request."""
    before = len(discord.by_bot(LOBBY))
    await discord.say(who, LOBBY, "Read todo.txt", mentions=[BOT])
    await discord.command(ADA, LOBBY, "model")
    return len(discord.by_bot(LOBBY)) == before


async def test_a_changed_file_is_in_use_at_the_next_message(
    discord: DiscordStandIn, workshop: Workshop, caplog: pytest.LogCaptureFixture
):
    async with workshop.bot({**ADA_ALONE, "owners": {"users": [ADA]}, "status": "Reading"}):
        assert discord.gateway.status == "Reading"
        assert await is_ignored(discord, BEN)
        workshop.configure({**BOTH, "status": "Writing"})
        await discord.say(BEN, LOBBY, "Read todo.txt", mentions=[BOT])
        await discord.answer(LOBBY, MILK)
        assert discord.gateway.status == "Writing"
        workshop.configure({**BOTH, "colour": 1})
        for who, is_told in ((BEN, False), (ADA, True), (ADA, True)):
            before = len(discord.by_bot(LOBBY))
            await discord.say(who, LOBBY, "Read todo.txt", mentions=[BOT])
            await discord.until(lambda before=before: len(discord.by_bot(LOBBY)) > before)
            text = discord.by_bot(LOBBY)[-1]["content"]
            note = f"-# {KEPT}: packetgate.toml: discord.colour:"
            assert (MILK in text, text.startswith(note)) == (True, is_told)
        assert len([one for one in caplog.records if KEPT in one.getMessage()]) == 1
        workshop.configure({**BOTH, "blocked": {"channels": [LOBBY]}})
        assert await is_ignored(discord, BEN)
        assert await discord.command(ADA, LOBBY, "model") == NOT_ALLOWED


async def test_a_broken_connection_delays_only_the_status(
    discord: DiscordStandIn, workshop: Workshop, local_models: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch
):
    async def broken(**_: Any) -> None:
        raise ConnectionResetError

    async with workshop.bot({**BOTH, "models": {"small": "openai:first"}}) as bot:
        monkeypatch.setattr(bot.ws, "change_presence", broken)
        workshop.configure({**BOTH, "models": {"small": "openai:second"}, "status": "Writing"})
        local_models.script(NO_TOOL, "It is grey.")
        await discord.say(ADA, LOBBY, "What colour is it?", mentions=[BOT])
        await discord.answer(LOBBY, "It is grey.")
    assert local_models.requests[-1]["model"] == "second"


async def test_a_tool_gives_nobody_rights(discord: DiscordStandIn, workshop: Workshop):
    words = 'path=packetgate.toml content="[discord]\\nallowed = {users = [901, 902]}" mode=overwrite'
    async with workshop.bot({**ADA_ALONE, "writes": {"users": [ADA]}, "owners": {"users": [ADA]}}):
        await discord.say(ADA, ADAS, f"/write {words}")
        await discord.press(ADA, await discord.question(ADAS), "Approve")
        await discord.command(ADA, ADAS, "reset")
        assert "902" in (workshop.folder / "packetgate.toml").read_text()
        assert await is_ignored(discord, BEN)
        await discord.say(ADA, LOBBY, "Read todo.txt", mentions=[BOT])
        await discord.answer(LOBBY, "a tool changed the file")


async def test_the_owner_switches_among_the_models_of_the_file(
    discord: DiscordStandIn, workshop: Workshop, local_models: ScriptedOpenAI
):
    models = {"small": "openai:first", "large": "openai:second", "gone": "llamacpp:gone.gguf"}

    async def answered_by() -> str:
        local_models.script(NO_TOOL, "It is grey.")
        before = len(discord.by_bot(LOBBY))
        await discord.say(BEN, LOBBY, "What colour is it?", mentions=[BOT])
        await discord.until(lambda: len(discord.by_bot(LOBBY)) > before)
        return str(local_models.requests[-1]["model"])

    async with workshop.bot({**BOTH, "models": models}):
        assert await answered_by() == "first"
        assert await discord.complete(BEN, LOBBY, "model", "") == ["small", "large", "gone"]
        assert await discord.complete(ADA, ADAS, "model", "L") == ["small", "large"]
        assert await discord.complete(ADA + 2, LOBBY, "model", "") == []
        assert (await discord.command(BEN, LOBBY, "model")).startswith("The model is `small`. Others: `large`, `gone`.")
        assert (await discord.command(BEN, LOBBY, "model", name="large")).startswith(NOT_AN_OWNER)
        assert "gone.gguf" in await discord.command(ADA, LOBBY, "model", name="gone")
        assert (await discord.command(ADA, LOBBY, "model", name="none")).startswith("There is no such model")
        assert await answered_by() == "first"
        assert (await discord.command(ADA, LOBBY, "model", name="large")).startswith("The model is `large`.")
        assert await answered_by() == "second"
        workshop.configure({**BOTH, "models": {"small": "openai:first"}})
        assert await answered_by() == "first"


@pytest.mark.parametrize(
    ("file", "says"),
    [
        ("", NO_MODEL),
        ('[models.lite]\nmodel = "openai:first?seed=1"\n', "The model is `openai:first`. It is the only one"),
    ],
)
async def test_the_model_command_says_that_there_is_no_choice(
    discord: DiscordStandIn, workshop: Workshop, local_models: ScriptedOpenAI, file: str, says: str
):
    (workshop.folder / "packetgate.toml").write_text(file)
    async with workshop.bot(BOTH):
        assert (await discord.command(ADA, LOBBY, "model")).startswith(says)
