"""What the bot answers, what it passes over, and whose conversation it is."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from support.discord_bots import ADA_ALONE, Workshop
from support.discord_payloads import ADA, ADAS, BEN, BENS, BOT, EVE, LAB, LOBBY, TEAM_ROLE, THREAD
from support.discord_server import SUPPRESS_EMBEDS, DiscordStandIn

from packetgate.connectors.opening import open_sessions

OPENS, MILK = "The gate opens at seven.", "Buy milk."


@pytest.mark.parametrize("where", [ADAS, LOBBY, THREAD])
async def test_what_is_said_to_it_is_answered_in_place(discord: DiscordStandIn, workshop: Workshop, where: int):
    """The answer stands in the one message that it sent, which pings nobody and unfolds no link."""
    async with workshop.bot(ADA_ALONE):
        asked = await discord.say(ADA, where, f"<@{BOT}> Read plan.txt", mentions=[BOT])
        answer = await discord.answer(where, OPENS)
    assert discord.by_bot(where) == [answer]
    assert f"```\n{OPENS}\n```" in answer["content"]
    first, *edits = [one for one in discord.arrived if f"/channels/{where}/messages" in one.path]
    assert (first.method, {one.method for one in edits}) == ("POST", {"PATCH"})
    assert str(first.body["message_reference"]["message_id"]) == asked["id"]
    assert all(one.body["allowed_mentions"]["parse"] == [] for one in [first, *edits])
    assert not first.body["allowed_mentions"].get("replied_user")
    assert all(one.body["flags"] == SUPPRESS_EMBEDS for one in [first, *edits])
    assert any(one.path == f"/channels/{where}/typing" for one in discord.arrived)


async def test_a_reply_to_it_is_answered_also_without_a_mention(discord: DiscordStandIn, workshop: Workshop):
    async with workshop.bot(ADA_ALONE):
        await discord.say(ADA, LOBBY, f"<@{BOT}> Read plan.txt", mentions=[BOT])
        answer = await discord.answer(LOBBY, OPENS)
        await discord.say(ADA, LOBBY, "Read todo.txt", to=answer)
        await discord.answer(LOBBY, MILK)


@dataclass(frozen=True)
class Unheard:
    id: str
    who: int = ADA
    content: str = "Read plan.txt"
    more: dict[str, Any] = field(default_factory=dict)


UNHEARD = [
    Unheard("to nobody"),
    Unheard("to everyone", more={"mention_everyone": True}),
    Unheard("to somebody else", content=f"<@{BEN}> Read plan.txt", more={"mentions": [BEN]}),
    Unheard("by somebody who is not allowed", who=BEN, more={"mentions": [BOT]}),
    Unheard("by a bot", who=BOT, more={"mentions": [BOT]}),
    Unheard("by a webhook", more={"webhook_id": "5", "mentions": [BOT]}),
    Unheard("by Discord itself", more={"type": 6, "mentions": [BOT]}),
]


@pytest.mark.parametrize("case", UNHEARD, ids=lambda case: case.id)
async def test_all_else_is_passed_over(discord: DiscordStandIn, workshop: Workshop, case: Unheard):
    async with workshop.bot(ADA_ALONE):
        unheard = await discord.say(case.who, LOBBY, case.content, **case.more)
        heard = await discord.say(ADA, LOBBY, "Read todo.txt", mentions=[BOT])
        await discord.answer(LOBBY, MILK)
    sent = [one.body for one in discord.arrived if (one.method, one.path) == ("POST", f"/channels/{LOBBY}/messages")]
    assert [str(one["message_reference"]["message_id"]) for one in sent] == [heard["id"]] != [unheard["id"]]


async def test_a_reply_to_somebody_else_is_passed_over(discord: DiscordStandIn, workshop: Workshop):
    async with workshop.bot(ADA_ALONE):
        await discord.say(ADA, LOBBY, "Read plan.txt", to=discord.keep(BEN, LOBBY, "What now?"))
        await discord.say(ADA, LOBBY, "Read todo.txt", mentions=[BOT])
        await discord.answer(LOBBY, MILK)
    assert len(discord.by_bot(LOBBY)) == 1


async def test_with_nobody_named_nobody_is_answered(
    discord: DiscordStandIn, workshop: Workshop, caplog: pytest.LogCaptureFixture
):
    async with workshop.bot({}):
        await discord.say(ADA, ADAS, "Read plan.txt")
        assert "not among those" in await discord.command(ADA, ADAS, "why")
    assert discord.by_bot(ADAS) == []
    assert "nobody is allowed yet" in caplog.text
    assert "[discord.allowed]" in caplog.text


@pytest.mark.parametrize(
    ("allowed", "who", "where"),
    [
        ({"roles": [TEAM_ROLE]}, ADA, LAB),
        ({"channels": [LOBBY]}, BEN, LOBBY),
        ({"channels": [LOBBY]}, BEN, THREAD),
        ({"channels": [BENS]}, BEN, BENS),
    ],
)
async def test_who_is_named_by_role_or_place_is_answered(
    discord: DiscordStandIn, workshop: Workshop, allowed: dict[str, list[int]], who: int, where: int
):
    async with workshop.bot({"allowed": allowed}):
        await discord.say(EVE, LAB, "Read plan.txt", mentions=[BOT])
        await discord.say(who, where, "Read todo.txt", mentions=[BOT])
        await discord.answer(where, MILK)
    assert [len(discord.by_bot(one)) for one in (where, LAB)] == [1, int(where == LAB)]


async def test_each_direct_message_thread_and_channel_is_a_session(discord: DiscordStandIn, workshop: Workshop):
    said = {ADAS: "Hello", LOBBY: "Read plan.txt", THREAD: "Read todo.txt"}
    async with workshop.bot(ADA_ALONE):
        for where, words in said.items():
            await discord.say(ADA, where, f"<@{BOT}> {words}", mentions=[BOT])
        for where, words in said.items():
            await discord.answer(where, {"Hello": "Hello!", "Read plan.txt": OPENS}.get(words, MILK))
    async with open_sessions(workshop.settings) as sessions:
        states = [await sessions.state(f"discord:{where}") for where in said]
    assert [state.packet.content.original_prompt for state in states] == list(said.values())
    assert {state.packet.header.origin for state in states} == {"discord"}


async def test_turns_on_one_session_queue_up(discord: DiscordStandIn, workshop: Workshop):
    async with workshop.bot(ADA_ALONE):
        for words in ("Read plan.txt", "Read todo.txt"):
            await discord.say(ADA, ADAS, words)
        await discord.answer(ADAS, MILK)
    first, second = discord.by_bot(ADAS)
    assert OPENS in first["content"]
    writes = [one for one in discord.arrived if f"/channels/{ADAS}/messages" in one.path]
    of_first = [index for index, one in enumerate(writes) if one.path.endswith(first["id"])]
    started = [index for index, one in enumerate(writes) if one.method == "POST"]
    assert max(of_first) < started[1]
    assert writes[-1].path.endswith(second["id"])


async def test_who_asks_too_often_is_told_once_how_long_to_wait(discord: DiscordStandIn, workshop: Workshop):
    config = {"allowed": {"users": [ADA, BEN]}, "rate": {"turns": 1, "seconds": 3_600.0}}
    async with workshop.bot(config):
        for _ in range(3):
            await discord.say(ADA, LOBBY, "Read plan.txt", mentions=[BOT])
        await discord.answer(LOBBY, OPENS)
        await discord.say(BEN, LOBBY, "Read todo.txt", mentions=[BOT])
        await discord.answer(LOBBY, MILK)
    notes = [one["content"] for one in discord.by_bot(LOBBY) if "again in" in one["content"]]
    assert len(notes) == 1
    seconds, unit = notes[0].split()[-2:]
    assert (0 < int(seconds) <= 3_600, unit) == (True, "seconds.")
    assert len(discord.by_bot(LOBBY)) == 3


async def test_no_words_are_logged(discord: DiscordStandIn, workshop: Workshop, caplog: pytest.LogCaptureFixture):
    caplog.set_level("INFO")
    async with workshop.bot(ADA_ALONE):
        await discord.say(ADA, ADAS, "Read plan.txt please, dear larkspur")
        await discord.answer(ADAS, OPENS)
        await discord.say(BEN, BENS, "larkspur is not for you")
        await discord.say(ADA, ADAS, "Read todo.txt")
        await discord.answer(ADAS, MILK)
    assert f"user {BEN} is not allowed in channel {BENS}" in caplog.text
    assert "larkspur" not in caplog.text
    assert "opens at seven" not in caplog.text
