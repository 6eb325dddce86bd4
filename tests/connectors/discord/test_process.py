"""`packetgate discord` as a process: refused configurations, and sessions shared with other machines."""

import re
import tomllib
from pathlib import Path

import pytest
from support.command_line import CommandLine
from support.discord_bots import Workshop
from support.discord_payloads import ADA, ADAS, BOT
from support.discord_process import refused, running
from support.discord_server import DiscordStandIn
from support.pages import ROOT

from packetgate.connectors.discord import command
from packetgate.state.errors import ConfigError

TUTORIAL = (ROOT / "docs" / "tutorials" / "discord.md").read_text()
ALLOWED = re.findall(r"```toml\n(.*?)```", TUTORIAL, re.DOTALL)[0].replace("123456789012345678", str(ADA))
"""The file that the tutorial prints, with Ada's id."""
WRITE = 'Write "hello" to notes.txt'


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variables", "config", "named"),
    [
        ({"DISCORD_TOKEN": ""}, "", "DISCORD_TOKEN"),
        ({"DISCORD_TOKEN": "wrong"}, "", "DISCORD_TOKEN"),
        ({}, "[discord]\ncolour = 1", "discord.colour"),
        ({"PACKETGATE_LITE": "nonsense"}, "", "nonsense"),
        ({"PACKETGATE_PALETTE_SIZE": "0"}, "", "PACKETGATE_PALETTE_SIZE"),
    ],
)
async def test_one_line_names_the_unusable_setting(
    cli: CommandLine, discord: DiscordStandIn, tmp_path: Path, variables: dict[str, str], config: str, named: str
):
    (cli.folder / "packetgate.toml").write_text(config)
    outcome = await refused(cli, discord, tmp_path / "patch", **variables)
    (line,) = [line for line in outcome.err.splitlines() if line.startswith("packetgate:")]
    assert (outcome.status, named in line) == (2, True), outcome.err
    assert "Traceback" not in outcome.err


async def test_the_error_names_a_missing_intent(cli: CommandLine, discord: DiscordStandIn, tmp_path: Path):
    discord.gateway.allows_content = False
    outcome = await refused(cli, discord, tmp_path / "patch")
    assert (outcome.status, "Message Content Intent" in outcome.err) == (2, True)


def test_writes_are_switched_on_only_by_the_table(cli: CommandLine):
    outcome = cli.run("discord", "--set", "allow_write_tools=true", DISCORD_TOKEN="x")
    assert (outcome.status, "[discord.writes]" in outcome.err) == (2, True)


async def test_the_error_names_a_missing_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PACKETGATE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DISCORD_TOKEN", "x")
    monkeypatch.setattr(command, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=re.escape("pip install '.[discord]'")):
        await command.discord()


async def test_the_steps_of_the_tutorial_are_true(discord: DiscordStandIn, workshop: Workshop):
    steps = re.findall(r"`([^`\n]*notes\.txt)`", TUTORIAL)
    assert steps == [WRITE, "Read notes.txt", "@packetgate /read notes.txt"]
    async with workshop.bot(tomllib.loads(ALLOWED)["discord"]):
        await discord.say(ADA, ADAS, WRITE)
        await discord.press(ADA, await discord.question(ADAS), "Approve")
        await discord.answer(ADAS, "Created notes.txt")
        for step in steps[1:]:
            before = len(discord.by_bot(ADAS))
            words = step.replace("@packetgate", f"<@{BOT}>")
            await discord.say(ADA, ADAS, words, mentions=[BOT] if words != step else [])
            await discord.until(lambda before=before: len(discord.by_bot(ADAS)) > before)
            assert "hello" in discord.by_bot(ADAS)[-1]["content"]
        await discord.say(ADA, ADAS, "Compose a sonnet about gates")
        await discord.answer(ADAS, "No tool matches")


@pytest.mark.slow
async def test_a_bot_on_another_machine_takes_over(
    cli: CommandLine, discord: DiscordStandIn, tmp_path: Path, postgres: str
):
    (cli.folder / "packetgate.toml").write_text(ALLOWED)
    where = {"PACKETGATE_DATABASE_URL": postgres}
    async with running(cli, discord, tmp_path / "patch", **where):
        await discord.until(lambda: discord.gateway.is_connected)
        await discord.say(ADA, ADAS, WRITE)
        question = await discord.question(ADAS)
    assert not discord.gateway.is_connected
    other = CommandLine(cli.folder, tmp_path / "another home")
    async with running(other, discord, tmp_path / "patch2", **where):
        await discord.until(lambda: discord.gateway.is_connected)
        await discord.press(ADA, question, "Approve")
        await discord.answer(ADAS, "Created notes.txt")
    assert (cli.folder / "notes.txt").read_text() == "hello"
