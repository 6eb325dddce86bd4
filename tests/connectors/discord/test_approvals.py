"""Calls that need approval: the displayed question, the users who may press its buttons, and the buttons' effects."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from support.command_line import CommandLine
from support.discord_bots import ADA_ALONE, Workshop
from support.discord_payloads import ADA, ADAS, BEN, BOT, CHIEF_ROLE, EVE, LOBBY, Payload
from support.discord_server import EPHEMERAL, NOTE, UPDATE, DiscordStandIn
from support.graphs import session
from support.notebook import Notebook
from support.scripted_deciders import calls, scripted, wanted

from packetgate.connectors import sessions
from packetgate.connectors.discord.conversations import (
    ANSWERED,
    ANSWERED_ELSEWHERE,
    ASKER_GONE,
    EXPIRED,
    QUESTION_CLOSED,
)
from packetgate.connectors.discord.questions import NOT_AUTHORISED
from packetgate.connectors.sessions import Sessions
from packetgate.connectors.turn import Finished, Reply, run_turn
from packetgate.state.base import now
from packetgate.state.context import RoutingContext

WRITING: dict[str, Any] = {
    "allowed": {"channels": [LOBBY], "users": [ADA]},
    "writes": {"channels": [LOBBY], "users": [ADA]},
    "approvers": {"roles": [CHIEF_ROLE]},
}
WRITE = f'<@{BOT}> Write "hello" to notes.txt'
DENIED = "you denied it"


async def ask(discord: DiscordStandIn, words: str = WRITE) -> Payload:
    """Send a request from Ada that needs approval; return the question."""
    await discord.say(ADA, LOBBY, words, mentions=[BOT])
    return await discord.question(LOBBY)


def labels(message: Payload) -> list[str]:
    return [button["label"] for row in message["components"] for button in row["components"]]


async def refused(discord: DiscordStandIn, who: int, question: Payload, label: str, reason: str) -> None:
    """Check that the bot refuses a press, and that only the user sees the reason."""
    note = await discord.press(who, question, label)
    assert (note["type"], note["data"]["content"], note["data"]["flags"]) == (NOTE, reason, EPHEMERAL)


async def test_a_question_shows_the_call_and_an_approval_runs_it(discord: DiscordStandIn, workshop: Workshop):
    notes = workshop.folder / "notes.txt"
    async with workshop.bot(WRITING):
        question = await ask(discord)
        assert not notes.exists()
        assert labels(question) == ["Approve", "Reject"]
        assert question["content"].startswith(f"<@{ADA}>, may this run? (until <t:")
        (embed,) = question["embeds"]
        for part in ("ai.write", "path = notes.txt", "content = hello", "review confidence"):
            assert part in embed["description"]
        assert embed["description"].count("```") == 2
        assert (await discord.press(ADA, question, "Approve"))["type"] == UPDATE
        await discord.answer(LOBBY, "Created notes.txt")
    decided = discord.messages[question["id"]]
    assert (decided["content"], decided["components"]) == (f"✅ Approved by <@{ADA}>.", [])
    assert decided["embeds"]
    assert notes.read_text() == "hello"


async def test_an_answer_in_a_terminal_runs_in_the_bot(discord: DiscordStandIn, workshop: Workshop):
    cli = CommandLine(workshop.folder, workshop.home)
    async with workshop.bot(WRITING):
        question = await ask(discord)
        shown = await asyncio.to_thread(cli.run, "answer")
        assert (shown.status, "content = hello" in shown.out) == (3, True), shown.err
        answered = await asyncio.to_thread(cli.run, "answer", "yes")
        assert (answered.status, "Created notes.txt" in answered.out) == (0, True), answered.err
        await discord.answer(LOBBY, "Created notes.txt")
    assert discord.messages[question["id"]]["content"] == ANSWERED_ELSEWHERE


async def test_an_edited_call_runs_as_edited(discord: DiscordStandIn, workshop: Workshop):
    async with workshop.bot(WRITING):
        await ask(discord)
        for text in ("edit {", "edit [1]"):
            await discord.say(ADA, LOBBY, f"<@{BOT}> {text}", mentions=[BOT])
            await discord.answer(LOBBY, "an edit is a JSON object")
        await discord.say(BEN, LOBBY, f'<@{BOT}> edit {{"path": "other.txt"}}', mentions=[BOT])
        await discord.answer(LOBBY, NOT_AUTHORISED)
        await discord.say(ADA, LOBBY, f'<@{BOT}> edit {{"path": "other.txt"}}', mentions=[BOT])
        await discord.answer(LOBBY, "Created other.txt")
    assert (workshop.folder / "other.txt").read_text() == "hello"
    assert not (workshop.folder / "notes.txt").exists()


async def test_only_the_asker_and_approvers_may_press_a_button(discord: DiscordStandIn, workshop: Workshop):
    """An approver acts with the rights of the asker: Eve alone may not write."""
    async with workshop.bot({**WRITING, "writes": {"users": [ADA]}}):
        question = await ask(discord)
        for label in ("Approve", "Reject"):
            await refused(discord, BEN, question, label, NOT_AUTHORISED)
        await discord.say(BEN, LOBBY, f"<@{BOT}> yes", mentions=[BOT])
        await discord.answer(LOBBY, NOT_AUTHORISED)
        assert discord.messages[question["id"]]["components"]
        assert not (workshop.folder / "notes.txt").exists()
        await discord.press(EVE, question, "Approve")
        await discord.answer(LOBBY, "Created notes.txt")


async def test_nothing_runs_after_the_asker_has_left(discord: DiscordStandIn, workshop: Workshop):
    async with workshop.bot(WRITING):
        question = await ask(discord)
        discord.gone.add(ADA)
        await refused(discord, EVE, question, "Approve", ASKER_GONE)
    assert not (workshop.folder / "notes.txt").exists()


async def test_an_answer_to_a_question_that_closes_meanwhile_is_no_turn_of_the_asker(
    discord: DiscordStandIn, workshop: Workshop
):
    """Ben's message waits for Ada's turn, which denies the call."""
    async with workshop.bot(WRITING) as bot:
        question = await ask(discord)
        first = question["components"][0]["components"][0]["custom_id"].rpartition(":")[2]
        talks, name = bot._conversations, f"discord:{LOBBY}:{first}"
        async with talks.lock(name):
            await discord.say(BEN, LOBBY, "yes", to=question)
            while not talks.lock(name)._waiters:  # noqa: ASYNC110  a lock tells nobody who waits
                await asyncio.sleep(0.01)
            denial = run_turn(talks.sessions, Reply("no"), name, RoutingContext())
            assert isinstance([event async for event in denial][-1], Finished)
        await discord.until(lambda: len(discord.by_bot(LOBBY)) > 1)
        assert (await talks.sessions.state(name)).packet.header.person == str(ADA)


async def test_a_new_request_is_answered_and_the_question_repeated(discord: DiscordStandIn, workshop: Workshop):
    async with workshop.bot(WRITING):
        question = await ask(discord)
        await discord.say(ADA, LOBBY, "Read todo.txt", to=question)
        await discord.answer(LOBBY, "Buy milk")
        repeated = await discord.until(lambda: [one for one in discord.by_bot(LOBBY) if one["components"]])
        left = discord.messages[question["id"]]
        assert (left["components"], left["content"]) == ([], ANSWERED)
        assert (await discord.press(ADA, {**question, "id": left["id"]}, "Approve"))["data"][
            "content"
        ] == QUESTION_CLOSED
        assert not (workshop.folder / "notes.txt").exists()
        assert repeated[-1]["content"].startswith(f"<@{ADA}>, may this run?")
        await discord.press(ADA, repeated[-1], "Approve")
        await discord.answer(LOBBY, "Created notes.txt")


@pytest.mark.parametrize("as_reply", [True, False])
async def test_another_conversation_leaves_a_question_open(discord: DiscordStandIn, workshop: Workshop, as_reply: bool):
    async with workshop.bot(WRITING):
        question = await ask(discord)
        for words, reason in (("yes", NOT_AUTHORISED), ("Read todo.txt", "Buy milk")):
            more: dict[str, Any] = {"to": question} if as_reply else {}
            await discord.say(BEN, LOBBY, words, mentions=[BOT], **more)
            await discord.answer(LOBBY, reason)
        assert discord.messages[question["id"]] == question
        await discord.press(ADA, question, "Approve")
        await discord.answer(LOBBY, "Created notes.txt")


@pytest.mark.parametrize(("words", "runs", "as_reply"), [("yes", True, True), ("no", False, False)])
async def test_the_asker_may_answer_by_a_message(
    discord: DiscordStandIn, workshop: Workshop, words: str, runs: bool, as_reply: bool
):
    async with workshop.bot(WRITING):
        question = await ask(discord)
        more: dict[str, Any] = {"to": question} if as_reply else {"mentions": [BOT]}
        await discord.say(ADA, LOBBY, words, **more)
        await discord.answer(LOBBY, "Created notes.txt" if runs else DENIED)
    assert discord.messages[question["id"]]["content"] == ANSWERED
    assert (workshop.folder / "notes.txt").exists() is runs


async def test_a_clarifying_question_accepts_text(discord: DiscordStandIn, workshop: Workshop):
    async with workshop.bot(ADA_ALONE):
        await discord.say(ADA, LOBBY, "Read the file", mentions=[BOT])
        question = await discord.answer(LOBBY, "I need to know")
        assert labels(question) == []
        assert "path" in question["embeds"][0]["description"]
        await discord.say(ADA, LOBBY, "plan.txt", to=question)
        await discord.answer(LOBBY, "opens at seven")
    assert discord.messages[question["id"]]["content"] == ANSWERED


@pytest.mark.parametrize("still_allowed", [True, False])
async def test_buttons_work_after_a_restart_with_current_rights(
    discord: DiscordStandIn, workshop: Workshop, still_allowed: bool
):
    async with workshop.bot(WRITING):
        question = await ask(discord)
    async with workshop.bot(WRITING if still_allowed else {"allowed": WRITING["allowed"]}):
        if still_allowed:
            await discord.press(ADA, question, "Approve")
            await discord.answer(LOBBY, "Created notes.txt")
        else:
            await refused(discord, ADA, question, "Approve", ASKER_GONE)
    assert (workshop.folder / "notes.txt").exists() is still_allowed


async def test_after_a_restart_a_message_answers_only_a_displayed_question(discord: DiscordStandIn, workshop: Workshop):
    async with workshop.bot(WRITING):
        question = await ask(discord)
    async with workshop.bot(WRITING):
        await discord.say(ADA, LOBBY, "yes", mentions=[BOT])
        shown = await discord.until(lambda: [one for one in discord.by_bot(LOBBY) if one["id"] != question["id"]])
        await discord.until(lambda: discord.messages[shown[0]["id"]]["components"])
        assert not (workshop.folder / "notes.txt").exists()
        await discord.say(ADA, LOBBY, "yes", mentions=[BOT])
        await discord.answer(LOBBY, "Created notes.txt")


async def test_a_button_press_after_the_expiry_runs_nothing(
    discord: DiscordStandIn, workshop: Workshop, monkeypatch: pytest.MonkeyPatch
):
    async with workshop.bot(WRITING):
        question = await ask(discord)
        monkeypatch.setattr(sessions, "now", lambda: now() + timedelta(days=2))
        assert (await discord.press(ADA, question, "Approve"))["data"]["content"] == EXPIRED
    assert discord.messages[question["id"]]["components"] == []
    assert not (workshop.folder / "notes.txt").exists()


TWO = calls(wanted("notebook.write_note", name="x", text="one"), wanted("notebook.write_note", name="y", text="two"))


async def test_several_calls_are_decided_together(discord: DiscordStandIn, workshop: Workshop):
    notebook = Notebook()
    async with session(scripted(TWO), notebook) as talk, workshop.bot(WRITING, Sessions(talk.graph)):
        await discord.say(ADA, ADAS, "Write one to x and two to y")
        question = await discord.question(ADAS)
        assert labels(question) == ["Approve all", "Reject all"]
        assert question["embeds"][0]["description"].count("notebook.write_note") >= 2
        await discord.press(ADA, question, "Approve all")
        await discord.answer(ADAS, "wrote x")
    assert (notebook.notes["x"], notebook.notes["y"]) == ("one", "two")


async def test_a_long_question_is_complete_in_a_file(discord: DiscordStandIn, workshop: Workshop):
    text = "``` [a link](http://example.com) @everyone " * 300
    long = calls(wanted("notebook.write_note", name="x", text=text))
    async with session(scripted(long), Notebook()) as talk, workshop.bot(WRITING, Sessions(talk.graph)):
        await discord.say(ADA, ADAS, "Write it")
        question = await discord.question(ADAS)
    shown = question["embeds"][0]["description"]
    assert len(shown) <= 4_096
    assert shown.count("```") == 2
    (sent,) = [one.files for one in discord.arrived if one.files]
    assert sent["question.txt"].decode().replace("\n  ↪ ", "").count("@everyone") == 300


@pytest.mark.parametrize("presser", [ADA, EVE])
async def test_a_remembered_answer_applies_only_to_the_asker(discord: DiscordStandIn, workshop: Workshop, presser: int):
    (workshop.folder / "packetgate.toml").write_text('[policy]\nremember = "always"\n')
    notes = workshop.folder / "notes.txt"
    async with workshop.bot(WRITING):
        await discord.press(presser, await ask(discord), "Always")
        await discord.answer(LOBBY, "Created notes.txt")
        for other in (BEN, EVE):
            notes.unlink(missing_ok=True)
            await discord.say(other, LOBBY, WRITE, mentions=[BOT])
            question = await discord.question(LOBBY, f"<@{other}>, may this run?")
            assert not notes.exists()
            await discord.press(other, question, "Reject")
            await discord.answer(LOBBY, DENIED)
        answers = len(discord.by_bot(LOBBY))
        await discord.say(ADA, LOBBY, WRITE, mentions=[BOT])
        await discord.until(lambda: len(discord.by_bot(LOBBY)) > answers and notes.exists())
