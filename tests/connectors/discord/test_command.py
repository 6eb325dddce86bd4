"""`packetgate discord` as a user runs it."""

from pathlib import Path

import pytest
from support.command_line import CommandLine
from support.discord_payloads import ADA, ADAS
from support.discord_process import refused, running
from support.discord_server import DiscordStandIn

ALLOWED = f"[discord.allowed]\nusers = [{ADA}]\n[discord.writes]\nusers = [{ADA}]\n"


async def test_it_answers_until_it_is_told_to_end(cli: CommandLine, discord: DiscordStandIn, tmp_path: Path):
    (cli.folder / "packetgate.toml").write_text(ALLOWED)
    async with running(cli, discord, tmp_path / "patch"):
        await discord.until(lambda: discord.gateway.is_connected)
        await discord.say(ADA, ADAS, 'Write "hello" to notes.txt')
        question = await discord.question(ADAS)
    assert not discord.gateway.is_connected
    async with running(cli, discord, tmp_path / "patch2"):
        await discord.until(lambda: discord.gateway.is_connected)
        await discord.press(ADA, question, "Approve")
        await discord.answer(ADAS, "Created notes.txt")
    assert (cli.folder / "notes.txt").read_text() == "hello"


@pytest.mark.parametrize(
    ("variables", "config", "says"),
    [
        ({"DISCORD_TOKEN": ""}, "", "DISCORD_TOKEN is not set"),
        ({"DISCORD_TOKEN": "wrong"}, "", "DISCORD_TOKEN: Discord does not know it"),
        ({}, "[discord]\ncolour = 1", "packetgate.toml: discord.colour: not known"),
        ({"PACKETGATE_LITE": "nonsense"}, "", "nonsense"),
    ],
)
async def test_what_cannot_be_used_is_told_in_a_line(
    cli: CommandLine, discord: DiscordStandIn, tmp_path: Path, variables: dict[str, str], config: str, says: str
):
    (cli.folder / "packetgate.toml").write_text(config)
    done = await refused(cli, discord, tmp_path / "patch", **variables)
    assert (done.status, says in done.err) == (2, True), done.err
    lines = [line for line in done.err.splitlines() if line.startswith("packetgate:")]
    assert len(lines) == 1
    assert "Traceback" not in done.err


async def test_without_the_intent_it_says_where_to_switch_it_on(
    cli: CommandLine, discord: DiscordStandIn, tmp_path: Path
):
    discord.gateway.allows_content = False
    done = await refused(cli, discord, tmp_path / "patch")
    assert done.status == 2
    assert "Message Content Intent" in done.err


def test_without_the_extra_it_says_how_to_install_it(cli: CommandLine, tmp_path: Path):
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util as util\nfind = util.find_spec\n"
        "util.find_spec = lambda name, *more: None if name == 'discord' else find(name, *more)\n"
    )
    done = cli.start("discord", DISCORD_TOKEN="x", PYTHONPATH=str(tmp_path))
    assert (done.status, done.out) == (2, "")
    assert "pip install 'packetgate[discord]'" in done.err
