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


async def test_a_bot_on_another_machine_takes_over(
    cli: CommandLine, discord: DiscordStandIn, tmp_path: Path, postgres: str
):
    (cli.folder / "packetgate.toml").write_text(ALLOWED)
    where = {"PACKETGATE_DATABASE_URL": postgres}
    async with running(cli, discord, tmp_path / "patch", **where):
        await discord.until(lambda: discord.gateway.is_connected)
        await discord.say(ADA, ADAS, 'Write "hello" to notes.txt')
        question = await discord.question(ADAS)
    other = CommandLine(cli.folder, tmp_path / "another home")
    async with running(other, discord, tmp_path / "patch2", **where):
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
        ({"PACKETGATE_PALETTE_SIZE": "0"}, "", "PACKETGATE_PALETTE_SIZE: it takes a whole number"),
        ({}, "[settings]\ncolour = 1", "packetgate.toml: settings.colour: there is no such setting"),
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


async def test_only_its_own_table_lets_people_write(cli: CommandLine, discord: DiscordStandIn, tmp_path: Path):
    (cli.folder / "packetgate.toml").write_text(
        f"[discord.allowed]\nusers = [{ADA}]\n[settings]\nallow_write_tools = true\nallow_execute_tools = true\n"
    )
    on = {"PACKETGATE_ALLOW_WRITE_TOOLS": "true", "PACKETGATE_CONFIDENCE_THRESHOLD": "0.1"}
    async with running(cli, discord, tmp_path / "patch", **on) as process:
        assert process.stderr is not None
        told = [(await process.stderr.readline()).decode().partition(": for other users")[0] for _ in range(3)]
        assert told == [
            "packetgate: PACKETGATE_ALLOW_WRITE_TOOLS",
            "packetgate: packetgate.toml: settings.allow_execute_tools",
            "packetgate: PACKETGATE_CONFIDENCE_THRESHOLD",
        ]
        await discord.until(lambda: discord.gateway.is_connected)
        await discord.say(ADA, ADAS, 'Write "hello" to notes.txt')
        await discord.answer(ADAS, "write tools are switched off")
    assert not (cli.folder / "notes.txt").exists()


def test_a_switch_that_says_nothing_there_is_refused(cli: CommandLine):
    done = cli.run("discord", "--set", "allow_write_tools=true", DISCORD_TOKEN="x")
    assert (done.status, done.out) == (2, "")
    assert "--set allow_write_tools cannot be used with discord: set [discord.writes] in packetgate.toml" in done.err


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
