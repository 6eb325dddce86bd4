"""The slash commands, and what is allowed to whom and where."""

from typing import Any

import pytest
from support.discord_bots import ADA_ALONE, Workshop
from support.discord_payloads import ADA, ADAS, BEN, BOT, LAB, LOBBY, THREAD
from support.discord_server import EPHEMERAL, NOTE, DiscordStandIn

from packetgate.connectors.discord.bot import INTENTS
from packetgate.connectors.discord.interactions import NOT_ALLOWED, model_text
from packetgate.connectors.opening import open_sessions
from packetgate.graph.settings import Settings


async def test_the_commands_are_made_known(discord: DiscordStandIn, workshop: Workshop):
    async with workshop.bot(ADA_ALONE):
        (synced,) = [one.body for one in discord.arrived if one.path == f"/applications/{BOT}/commands"]
    assert {one["name"] for one in synced} == {"tools", "why", "reset", "model"}  # type: ignore[index]
    assert all(one["description"] for one in synced)  # type: ignore[index]


async def test_why_shows_the_last_packets_journey(discord: DiscordStandIn, workshop: Workshop):
    async with workshop.bot(ADA_ALONE):
        assert "Nothing has been asked" in await discord.command(ADA, ADAS, "why")
        await discord.say(ADA, ADAS, "Read plan.txt")
        await discord.answer(ADAS, "opens at seven")
        why = await discord.command(ADA, ADAS, "why")
    assert why.startswith("```\nstage")
    assert why.endswith("```")
    stages = [line.split()[0] for line in why.splitlines() if line[:1].isalpha()]
    assert [stage for stage in stages if "_" in stage][:4] == [
        "open_packet",
        "detect_intent",
        "build_palette",
        "select_tool",
    ]
    assert "ai.read" in why
    assert f"session discord:{ADAS}" in why.replace("\n", " ")


async def test_tools_shows_what_may_be_used_here(discord: DiscordStandIn, workshop: Workshop):
    config = {**ADA_ALONE, "writes": {"users": [ADA]}, "tools": {str(LOBBY): ["ai.r*"]}}
    async with workshop.bot(config):
        assert "Only these may be used here: `ai.r*`" in await discord.command(ADA, LOBBY, "tools")
        for where in (ADAS, LOBBY):
            await discord.say(ADA, where, "Read plan.txt", mentions=[BOT])
            await discord.answer(where, "opens at seven")
        everywhere, here = [await discord.command(ADA, where, "tools") for where in (ADAS, LOBBY)]
    assert "* ai.read" in everywhere
    assert "ai.write" in everywhere
    assert "writes after approval, commands only as a dry run" in everywhere
    assert ("ai.read" in here, "ai.write" in here) == (True, False)


async def test_reset_forgets_the_conversation_and_its_question(discord: DiscordStandIn, workshop: Workshop):
    async with workshop.bot({**ADA_ALONE, "writes": {"users": [ADA]}}):
        await discord.say(ADA, ADAS, 'Write "hello" to notes.txt')
        question = await discord.question(ADAS)
        assert "forgotten" in await discord.command(ADA, ADAS, "reset")
        assert discord.messages[question["id"]]["components"] == []
    async with open_sessions(workshop.settings) as sessions:
        state = await sessions.state(f"discord:{ADAS}")
    assert (state.packet.content.original_prompt, state.question) == ("", None)


async def test_model_says_who_plays(discord: DiscordStandIn, workshop: Workshop):
    async with workshop.bot(ADA_ALONE):
        assert "`reflex`" in await discord.command(ADA, ADAS, "model")
    local = Settings(lite="llamacpp:/home/ada/secret/tiny.gguf", prime="openai:large")
    assert "`llamacpp:tiny.gguf`" in model_text(local)
    assert "secret" not in model_text(local)
    assert "`mine`" in model_text(Settings(url="http://inside:8123", assistant="mine"))
    assert "inside" not in model_text(Settings(url="http://inside:8123", assistant="mine"))


@pytest.mark.parametrize("name", ["tools", "why", "reset", "model"])
async def test_who_is_not_allowed_is_told_nothing(discord: DiscordStandIn, workshop: Workshop, name: str):
    async with workshop.bot(ADA_ALONE):
        answer = await discord.interact(BEN, LOBBY, 2, {"id": "1", "name": name, "type": 1})
    assert (answer["type"], answer["data"]["content"], answer["data"]["flags"]) == (NOTE, NOT_ALLOWED, EPHEMERAL)


WRITE = 'Write "hello" to notes.txt'


@pytest.mark.parametrize(
    ("config", "where", "asks"),
    [
        ({}, ADAS, False),
        ({"writes": {"channels": [LAB]}}, LOBBY, False),
        ({"writes": {"channels": [LOBBY]}}, LOBBY, True),
        ({"writes": {"channels": [LOBBY]}}, THREAD, True),
        ({"commands": {"users": [ADA]}}, ADAS, False),
        ({"writes": {"users": [BEN]}}, LOBBY, False),
    ],
)
async def test_writes_are_off_where_nobody_switched_them_on(
    discord: DiscordStandIn, workshop: Workshop, config: dict[str, Any], where: int, asks: bool
):
    async with workshop.bot({**ADA_ALONE, **config}):
        await discord.say(ADA, where, WRITE, mentions=[BOT])
        if asks:
            await discord.question(where)
        else:
            await discord.answer(where, "switched off; whoever runs this bot switches them on under `[discord.writes]`")
    assert not (workshop.folder / "notes.txt").exists()


async def test_in_a_channel_only_its_tools_are_used(discord: DiscordStandIn, workshop: Workshop):
    config = {**ADA_ALONE, "tools": {str(LOBBY): ["embedding.*"], str(LAB): []}}
    async with workshop.bot(config):
        for where in (LOBBY, THREAD, LAB):
            await discord.say(ADA, where, "Read plan.txt", mentions=[BOT])
            await discord.until(lambda where=where: [one for one in discord.by_bot(where) if "*" not in one["content"]])
        await discord.say(ADA, ADAS, "Read plan.txt")
        await discord.answer(ADAS, "opens at seven")
    for where in (LOBBY, THREAD, LAB):
        (answer,) = discord.by_bot(where)
        assert "opens at seven" not in answer["content"]
    async with open_sessions(workshop.settings) as sessions:
        packets = [(await sessions.state(f"discord:{where}")).packet for where in (LOBBY, LAB)]
    assert all({*packet.context.available_mcp_tools} <= {"embedding.query"} for packet in packets)


def test_the_bot_sees_content_and_nothing_that_it_does_not_need():
    assert {name for name, on in INTENTS if on} == {"guilds", "guild_messages", "dm_messages", "message_content"}
