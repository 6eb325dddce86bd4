"""One thread in several places, all on one PostgreSQL: the bot on one machine, a terminal on another."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

from support.command_line import CommandLine, Outcome
from support.discord_payloads import ADA, ADAS
from support.discord_process import running
from support.discord_server import DiscordStandIn
from support.mcp_servers import until

from packetgate.connectors.discord.conversing import NOT_YOURS, session_of
from packetgate.connectors.discord.interactions import NOT_ANY_MORE

ALLOWED = f"[discord.allowed]\nusers = [{ADA}]\n[discord.writes]\nusers = [{ADA}]\n"
SESSION = session_of(ADAS)


async def test_a_thread_goes_on_between_the_bot_and_a_terminal(
    cli: CommandLine, discord: DiscordStandIn, tmp_path: Path, postgres: str
) -> None:
    (cli.folder / "packetgate.toml").write_text(ALLOWED)
    where = {"PACKETGATE_DATABASE_URL": postgres}
    terminal = CommandLine(cli.folder, tmp_path / "another home")

    async def typed(command: str, *words: str) -> Outcome:
        return await asyncio.to_thread(terminal.run, command, "--session", SESSION, *words, **where)

    async def entries(event: str) -> list[dict[str, Any]]:
        told = await asyncio.to_thread(terminal.run, "audit", "--json", **where)
        return [row for row in map(json.loads, told.out.splitlines()) if row["event"] == event]

    begun = await typed("ask", "Read plan.txt")
    assert (begun.status, "opens at seven" in begun.out) == (0, True), begun.err
    async with running(cli, discord, tmp_path / "patch", **where):
        await discord.until(lambda: discord.gateway.is_connected)
        await discord.say(ADA, ADAS, 'Write "hello" to notes.txt')
        question = await discord.question(ADAS)
        (asked,) = await entries("question_asked")
        assert asked["session_id"] == SESSION

        shown = await typed("answer", "yes")
        named = re.search(r"--question (\w+)", shown.out + shown.err)
        assert (shown.status, (cli.folder / "notes.txt").exists()) == (3, False), "it was not shown there before"
        assert named, shown
        yes = typed("answer", "yes", "--question", named[1])
        await asyncio.gather(discord.press(ADA, question, "Approve"), yes)
        await until((cli.folder / "notes.txt").exists)
        assert (cli.folder / "notes.txt").read_text() == "hello"
        written = [row for row in await entries("call_started") if json.loads(row["detail"])["tool"] == "ai.write"]
        assert len(written) == 1
        assert (await discord.press(ADA, question, "Approve"))["data"]["content"] == NOT_ANY_MORE

        waits = await typed("ask", "--allow-writes", 'Write "bye" to late.txt')
        assert waits.status == 3, waits.err
        await discord.say(ADA, ADAS, "yes")
        await discord.answer(ADAS, NOT_YOURS)
        assert not (cli.folder / "late.txt").exists(), "nobody was shown that there"
        late = await typed("answer", "yes")
    assert (late.status, (cli.folder / "late.txt").read_text()) == (0, "bye")
