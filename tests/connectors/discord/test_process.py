"""`packetgate discord` as a process: what it refuses, and sessions shared with other machines."""

import asyncio
import json
import re
from pathlib import Path

import pytest
from support.command_line import CommandLine, Outcome
from support.discord_payloads import ADA, ADAS
from support.discord_process import refused, running
from support.discord_server import DiscordStandIn
from support.mcp_servers import until

from packetgate.connectors.discord import command
from packetgate.connectors.discord.conversations import NOT_OPEN, session_of
from packetgate.connectors.discord.questions import NOT_AUTHORISED
from packetgate.state.errors import ConfigError

ALLOWED = f"[discord.allowed]\nusers = [{ADA}]\n[discord.writes]\nusers = [{ADA}]\n"
WRITE = 'Write "hello" to notes.txt'


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
async def test_unusable_settings_are_named_in_one_line(
    cli: CommandLine, discord: DiscordStandIn, tmp_path: Path, variables: dict[str, str], config: str, named: str
):
    (cli.folder / "packetgate.toml").write_text(config)
    outcome = await refused(cli, discord, tmp_path / "patch", **variables)
    (line,) = [line for line in outcome.err.splitlines() if line.startswith("packetgate:")]
    assert (outcome.status, named in line) == (2, True), outcome.err
    assert "Traceback" not in outcome.err


async def test_a_missing_intent_is_named(cli: CommandLine, discord: DiscordStandIn, tmp_path: Path):
    discord.gateway.allows_content = False
    outcome = await refused(cli, discord, tmp_path / "patch")
    assert (outcome.status, "Message Content Intent" in outcome.err) == (2, True)


def test_writes_are_switched_on_only_by_the_table(cli: CommandLine):
    outcome = cli.run("discord", "--set", "allow_write_tools=true", DISCORD_TOKEN="x")
    assert (outcome.status, "[discord.writes]" in outcome.err) == (2, True)


async def test_a_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PACKETGATE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DISCORD_TOKEN", "x")
    monkeypatch.setattr(command, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=re.escape("packetgate[discord]")):
        await command.discord()


@pytest.mark.slow
async def test_settings_and_variables_allow_no_writes(cli: CommandLine, discord: DiscordStandIn, tmp_path: Path):
    (cli.folder / "packetgate.toml").write_text(
        f"[discord.allowed]\nusers = [{ADA}]\n[settings]\nallow_write_tools = true\n"
    )
    async with running(cli, discord, tmp_path / "patch", PACKETGATE_ALLOW_WRITE_TOOLS="true"):
        await discord.until(lambda: discord.gateway.is_connected)
        await discord.say(ADA, ADAS, WRITE)
        await discord.answer(ADAS, "`[discord.writes]`")
    assert not (cli.folder / "notes.txt").exists()


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


@pytest.mark.slow
async def test_a_session_continues_between_the_bot_and_a_terminal(
    cli: CommandLine, discord: DiscordStandIn, tmp_path: Path, postgres: str
) -> None:
    (cli.folder / "packetgate.toml").write_text(ALLOWED)
    where = {"PACKETGATE_DATABASE_URL": postgres}
    terminal = CommandLine(cli.folder, tmp_path / "another home")

    async def typed(name: str, *words: str) -> Outcome:
        return await asyncio.to_thread(terminal.run, name, "--session", session_of(ADAS), *words, **where)

    async def writes() -> int:
        audit = await asyncio.to_thread(terminal.run, "audit", "--json", **where)
        started = [row for row in map(json.loads, audit.out.splitlines()) if row["event"] == "call_started"]
        return [json.loads(row["detail"])["tool"] for row in started].count("ai.write")

    before = await writes()  # other tests have this database too
    begun = await typed("ask", "Read plan.txt")
    assert (begun.status, "opens at seven" in begun.out) == (0, True), begun.err
    async with running(cli, discord, tmp_path / "patch", **where):
        await discord.until(lambda: discord.gateway.is_connected)
        await discord.say(ADA, ADAS, WRITE)
        question = await discord.question(ADAS)
        shown = await typed("answer", "yes")
        named = re.search(r"--question (\w+)", shown.out + shown.err)
        assert (shown.status, (cli.folder / "notes.txt").exists()) == (3, False), "it was not shown there before"
        assert named, shown
        yes = typed("answer", "yes", "--question", named[1])
        await asyncio.gather(discord.press(ADA, question, "Approve"), yes)
        await until((cli.folder / "notes.txt").exists)
        assert await writes() == before + 1
        assert (await discord.press(ADA, question, "Approve"))["data"]["content"] == NOT_OPEN

        waits = await typed("ask", "--allow-writes", 'Write "bye" to late.txt')
        assert waits.status == 3, waits.err
        await discord.say(ADA, ADAS, "yes")
        await discord.answer(ADAS, NOT_AUTHORISED)
        assert not (cli.folder / "late.txt").exists(), "the question was not shown on Discord"
        late = await typed("answer", "yes")
    assert (late.status, (cli.folder / "late.txt").read_text()) == (0, "bye")
