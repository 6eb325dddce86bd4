"""Questions that wait: for words, over a restart, for too long, and several calls at once."""

import json
from typing import Any

import pytest
from support.discord_bots import ADA_ALONE, Workshop
from support.discord_payloads import ADA, ADAS, BEN, BOT, LOBBY, Payload
from support.discord_server import DiscordStandIn
from support.graphs import session
from support.mcp_servers import until
from support.notebook import Notebook
from support.scripted_deciders import calls, scripted, wanted

from packetgate.connectors.discord.conversing import ANSWERED, LAPSED
from packetgate.connectors.discord.interactions import NOT_ANY_MORE, NOT_THERE
from packetgate.connectors.sessions import Sessions
from packetgate.state.errors import ConfigError

WRITING: dict[str, Any] = {"allowed": {"users": [ADA]}, "writes": {"users": [ADA]}}
WRITE = 'Write "hello" to notes.txt'


def labels(message: Payload) -> list[str]:
    return [button["label"] for row in message["components"] for button in row["components"]]


async def test_a_plain_question_wants_words(discord: DiscordStandIn, workshop: Workshop):
    async with workshop.bot(ADA_ALONE):
        await discord.say(ADA, LOBBY, "Read the file", mentions=[BOT])
        question = await discord.question(LOBBY)
        assert labels(question) == ["Answer"]
        assert "path" in question["embeds"][0]["description"]
        form = await discord.press(ADA, question, "Answer")
        await discord.fill(ADA, question, form, "plan.txt")
        await discord.answer(LOBBY, "opens at seven")
    assert discord.messages[question["id"]]["content"] == f"💬 Answered by <@{ADA}>."


async def test_alone_with_the_bot_the_next_words_are_the_answer(discord: DiscordStandIn, workshop: Workshop):
    async with workshop.bot(ADA_ALONE):
        await discord.say(ADA, ADAS, "Read the file")
        question = await discord.question(ADAS)
        await discord.say(ADA, ADAS, "plan.txt")
        await discord.answer(ADAS, "opens at seven")
    assert discord.messages[question["id"]]["content"] == ANSWERED


async def test_buttons_and_open_forms_outlive_the_bot(discord: DiscordStandIn, workshop: Workshop):
    async with workshop.bot(WRITING):
        await discord.say(ADA, ADAS, WRITE)
        question = await discord.question(ADAS)
        form = await discord.press(ADA, question, "Edit")
    async with workshop.bot(WRITING):
        await discord.fill(ADA, question, form, '{"path": "other.txt", "content": "bye"}')
        await discord.answer(ADAS, "Created other.txt")
        assert (await discord.press(ADA, question, "Approve"))["data"]["content"] == NOT_ANY_MORE
    assert (workshop.folder / "other.txt").read_text() == "bye"


async def test_approve_after_a_restart(discord: DiscordStandIn, workshop: Workshop):
    async with workshop.bot(WRITING):
        await discord.say(ADA, LOBBY, WRITE, mentions=[BOT])
        question = await discord.question(LOBBY)
    async with workshop.bot(WRITING):
        await discord.press(ADA, question, "Approve")
        await discord.answer(LOBBY, "Created notes.txt")


async def test_after_a_restart_the_rights_are_those_of_now(discord: DiscordStandIn, workshop: Workshop):
    async with workshop.bot(WRITING):
        await discord.say(ADA, LOBBY, WRITE, mentions=[BOT])
        question = await discord.question(LOBBY)
    async with workshop.bot(ADA_ALONE):
        assert (await discord.press(ADA, question, "Approve"))["data"]["content"] == NOT_THERE
    assert not (workshop.folder / "notes.txt").exists()


async def test_a_question_is_seen_to_lapse(discord: DiscordStandIn, workshop: Workshop):
    async with workshop.bot({**WRITING, "question_timeout_s": 0.5}):
        await discord.say(ADA, ADAS, WRITE)
        lapsed = await discord.answer(ADAS, LAPSED)
        assert lapsed["components"] == []
        assert lapsed["embeds"]
    assert not (workshop.folder / "notes.txt").exists()


async def test_a_question_is_seen_to_lapse_after_a_restart(discord: DiscordStandIn, workshop: Workshop):
    async with workshop.bot({**WRITING, "question_timeout_s": 2.0}):
        await discord.say(ADA, ADAS, WRITE)
        question = await discord.question(ADAS)
    async with workshop.bot(WRITING):
        assert (await discord.answer(ADAS, LAPSED))["id"] == question["id"]
        await until(lambda: json.loads((workshop.home / "discord-questions.json").read_text()) == [])


async def test_a_press_that_comes_too_late_runs_nothing(discord: DiscordStandIn, workshop: Workshop):
    """Also where the bot has lost its own notes of what is open."""
    async with workshop.bot({**WRITING, "question_timeout_s": 0.5}):
        await discord.say(ADA, ADAS, WRITE)
        lapsed = await discord.answer(ADAS, LAPSED)
        question = next(
            json.loads(json.dumps(one.body)) for one in reversed(discord.arrived) if one.body.get("components")
        )
        pressed = await discord.press(ADA, {**lapsed, "components": question["components"]}, "Approve")
    assert pressed["data"]["content"] == LAPSED
    assert not (workshop.folder / "notes.txt").exists()


async def test_broken_notes_of_what_is_open_are_told(discord: DiscordStandIn, workshop: Workshop):
    workshop.home.mkdir()
    (workshop.home / "discord-questions.json").write_text("{")
    with pytest.raises(ConfigError, match="delete it"):
        async with workshop.bot(ADA_ALONE):
            pass


TWO = calls(wanted("notebook.write_note", name="x", text="one"), wanted("notebook.write_note", name="y", text="two"))


async def test_several_calls_are_decided_in_one_question(discord: DiscordStandIn, workshop: Workshop):
    """One is edited, the other one emptied: it does not run."""
    notebook = Notebook()
    async with session(scripted(TWO), notebook) as talk, workshop.bot(WRITING, Sessions(talk.graph)):
        await discord.say(ADA, ADAS, "Write one to x and two to y")
        question = await discord.question(ADAS)
        assert labels(question) == ["Approve all", "Edit", "Reject all", "Answer"]
        assert [embed["title"] for embed in question["embeds"]] == ["notebook.write_note"] * 2
        form = await discord.press(ADA, question, "Edit")
        await discord.fill(ADA, question, form, '{"name": "x", "text": "three"}', "")
        await discord.answer(ADAS, "wrote x")
    assert (notebook.notes["x"], "y" in notebook.notes) == ("three", False)


async def test_all_of_several_calls_are_approved(discord: DiscordStandIn, workshop: Workshop):
    notebook = Notebook()
    async with session(scripted(TWO), notebook) as talk, workshop.bot(WRITING, Sessions(talk.graph)):
        await discord.say(ADA, ADAS, "Write one to x and two to y")
        await discord.press(ADA, await discord.question(ADAS), "Approve")
        await discord.answer(ADAS, "wrote y")
    assert (notebook.notes["x"], notebook.notes["y"]) == ("one", "two")


async def test_what_is_too_long_to_show_comes_whole_as_a_file(discord: DiscordStandIn, workshop: Workshop):
    text = "``` [a link](http://example.com) @everyone " * 300
    long = calls(wanted("notebook.write_note", name="x", text=text))
    async with session(scripted(long), Notebook()) as talk, workshop.bot(WRITING, Sessions(talk.graph)):
        await discord.say(ADA, ADAS, "Write it")
        question = await discord.question(ADAS)
    assert labels(question) == ["Approve", "Reject", "Answer"], "too long for a form"
    shown = question["embeds"][0]["description"]
    assert len(shown) <= 4_096
    assert shown.count("```") == 2
    assert "whole in calls.json" in shown
    (sent,) = [one.files for one in discord.arrived if one.files]
    assert json.loads(sent["calls.json"])[0]["arguments"]["text"] == text
    assert str(BEN) not in json.dumps(question)
