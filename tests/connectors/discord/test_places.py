"""The bot on this process's graph and on a running LangGraph server."""

from support.discord_bots import Workshop
from support.discord_payloads import ADA, ADAS
from support.discord_server import DiscordStandIn
from support.turn_places import Place, answering, wanting

from packetgate.connectors.opening import open_sessions

WRITING = {"allowed": {"users": [ADA]}, "writes": {"users": [ADA]}}


async def test_a_call_is_asked_about_approved_and_run(place: Place, discord: DiscordStandIn, workshop: Workshop):
    wanted = wanting("ai.write", "write", path="from_discord.txt", content="hello")
    place.model.script(*wanted, *answering("It is written."))
    async with open_sessions(place.settings) as sessions, workshop.bot(WRITING, sessions):
        await discord.say(ADA, ADAS, 'Write "hello" to from_discord.txt')
        question = await discord.question(ADAS)
        assert not (place.root / "from_discord.txt").exists()
        await discord.press(ADA, question, "Approve")
        await discord.answer(ADAS, "It is written.")
        assert "review_selection" in await discord.command(ADA, ADAS, "why")
        assert "forgotten" in await discord.command(ADA, ADAS, "reset")
        assert (await sessions.state(f"discord:{ADAS}")).packet.content.original_prompt == ""
    assert (place.root / "from_discord.txt").read_text() == "hello"


async def test_where_writes_are_off_nothing_is_asked_and_nothing_run(
    place: Place, discord: DiscordStandIn, workshop: Workshop
):
    wanted = wanting("ai.write", "write", path="never.txt", content="hello")
    place.model.script(*wanted, *answering("Nothing was written."))
    async with open_sessions(place.settings) as sessions, workshop.bot({"allowed": {"users": [ADA]}}, sessions):
        await discord.say(ADA, ADAS, 'Write "hello" to never.txt')
        await discord.answer(ADAS, "Nothing was written.")
    assert not (place.root / "never.txt").exists()
