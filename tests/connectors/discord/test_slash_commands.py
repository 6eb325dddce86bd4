"""The slash commands, and the tools that a user may use in a channel."""

from typing import Any

import pytest
from support.discord_bots import ADA_ALONE, Workshop
from support.discord_payloads import ADA, ADAS, BEN, BOT, LAB, LOBBY, THREAD, session_name
from support.discord_server import EPHEMERAL, NOTE, DiscordStandIn

from packetgate.connectors.discord.bot import INTENTS, NOT_ALLOWED
from packetgate.connectors.opening import open_sessions

WRITE = 'Write "hello" to notes.txt'


async def test_reset_deletes_the_conversation(discord: DiscordStandIn, workshop: Workshop):
    async with workshop.bot({**ADA_ALONE, "writes": {"users": [ADA]}}):
        (synced,) = [one.body for one in discord.arrived if one.path == f"/applications/{BOT}/commands"]
        assert {one["name"] for one in synced} == {"model", "reset"}  # type: ignore[index]
        first = await discord.say(ADA, ADAS, WRITE)
        question = await discord.question(ADAS)
        await discord.command(ADA, ADAS, "reset")
        assert discord.messages[question["id"]]["components"] == []
    async with open_sessions(workshop.settings) as sessions:
        state = await sessions.state(session_name(first))
    assert (state.packet.content.original_prompt, state.question) == ("", None)


async def test_users_who_are_not_allowed_get_only_a_refusal(discord: DiscordStandIn, workshop: Workshop):
    async with workshop.bot(ADA_ALONE):
        reply = await discord.interact(BEN, LOBBY, 2, {"id": "1", "name": "reset", "type": 1})
        assert (reply["type"], reply["data"]["content"], reply["data"]["flags"]) == (NOTE, NOT_ALLOWED, EPHEMERAL)


@pytest.mark.parametrize(
    ("config", "where", "asks"),
    [
        ({}, ADAS, False),
        ({"writes": {"channels": [LOBBY]}}, THREAD, True),
    ],
)
async def test_writes_are_off_unless_the_table_switches_them_on(
    discord: DiscordStandIn, workshop: Workshop, config: dict[str, Any], where: int, asks: bool
):
    async with workshop.bot({**ADA_ALONE, **config}):
        await discord.say(ADA, where, WRITE, mentions=[BOT])
        if asks:
            await discord.question(where)
        else:
            await discord.answer(where, "`[discord.writes]`")
    assert not (workshop.folder / "notes.txt").exists()


async def test_in_a_channel_only_its_tools_are_used(discord: DiscordStandIn, workshop: Workshop):
    async with workshop.bot({**ADA_ALONE, "tools": {str(LOBBY): ["embedding.*"], str(LAB): []}}):
        firsts = []
        for where in (LOBBY, THREAD, LAB):
            firsts.append(await discord.say(ADA, where, "Read plan.txt", mentions=[BOT]))
            await discord.until(lambda where=where: discord.by_bot(where))
    assert not [one for where in (LOBBY, THREAD, LAB) for one in discord.by_bot(where) if "opens" in one["content"]]
    async with open_sessions(workshop.settings) as sessions:
        packets = [(await sessions.state(session_name(first))).packet for first in firsts]
    assert all({*packet.context.available_mcp_tools} <= {"embedding.query"} for packet in packets)


def test_the_bot_has_only_the_intents_that_it_needs():
    assert {name for name, on in INTENTS if on} == {"guilds", "guild_messages", "dm_messages", "message_content"}
