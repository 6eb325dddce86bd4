"""A call that needs approval: what is shown, who may press, and what each button does."""

import json
from typing import Any

import pytest
from support.discord_bots import Workshop
from support.discord_payloads import ADA, BEN, BOT, CHIEF_ROLE, EVE, LOBBY, Payload
from support.discord_server import EPHEMERAL, FORM, NOTE, UPDATE, DiscordStandIn

from packetgate.connectors.discord.interactions import NOT_ANY_MORE, NOT_THERE, NOT_YOURS

WRITING: dict[str, Any] = {
    "allowed": {"channels": [LOBBY]},
    "writes": {"channels": [LOBBY]},
    "approvers": {"roles": [CHIEF_ROLE]},
}
WRITE = f'<@{BOT}> Write "hello" to notes.txt'


async def asked(discord: DiscordStandIn, words: str = WRITE) -> Payload:
    """Have Ada ask for something that needs approval; return the question."""
    await discord.say(ADA, LOBBY, words, mentions=[BOT])
    return await discord.question(LOBBY)


def labels(message: Payload) -> list[str]:
    return [button["label"] for row in message["components"] for button in row["components"]]


async def test_a_question_shows_what_would_run(discord: DiscordStandIn, workshop: Workshop):
    async with workshop.bot(WRITING):
        question = await asked(discord)
        assert not (workshop.folder / "notes.txt").exists()
    assert labels(question) == ["Approve", "Edit", "Reject", "Answer"]
    assert question["content"].startswith(f"<@{ADA}>, may this run? (until <t:")
    assert question["flags"] == 0
    (embed,) = question["embeds"]
    assert embed["title"] == "ai.write"
    assert '"content": "hello"' in embed["description"]
    assert '"path": "notes.txt"' in embed["description"]
    assert "ai.write (write), review confidence" in embed["description"].replace("\\", "")
    assert len(discord.by_bot(LOBBY)) == 1


async def test_approve(discord: DiscordStandIn, workshop: Workshop):
    async with workshop.bot(WRITING):
        question = await asked(discord)
        pressed = await discord.press(ADA, question, "Approve")
        answer = await discord.answer(LOBBY, "Created notes.txt")
    assert pressed["type"] == UPDATE
    decided = discord.messages[question["id"]]
    assert (decided["content"], decided["components"]) == (f"✅ Approved by <@{ADA}>.", [])
    assert decided["embeds"]
    assert answer["id"] != question["id"]
    assert (workshop.folder / "notes.txt").read_text() == "hello"


async def test_reject(discord: DiscordStandIn, workshop: Workshop):
    async with workshop.bot(WRITING):
        await discord.press(ADA, await asked(discord), "Reject")
        await discord.answer(LOBBY, "you denied it")
    assert not (workshop.folder / "notes.txt").exists()


async def test_edit(discord: DiscordStandIn, workshop: Workshop):
    async with workshop.bot(WRITING):
        question = await asked(discord)
        form = await discord.press(ADA, question, "Edit")
        assert form["type"] == FORM
        (row,) = form["data"]["components"]
        args = json.loads(row["components"][0]["value"])
        assert args == {"path": "notes.txt", "content": "hello"}
        await discord.fill(ADA, question, form, json.dumps({**args, "path": "other.txt"}))
        await discord.answer(LOBBY, "Created other.txt")
    assert (workshop.folder / "other.txt").read_text() == "hello"
    assert not (workshop.folder / "notes.txt").exists()


@pytest.mark.parametrize(("written", "says"), [("{", "not JSON"), ("[]", "JSON object"), ("[" * 4_000, "not JSON")])
async def test_an_edit_that_cannot_be_read_leaves_the_question(
    discord: DiscordStandIn, workshop: Workshop, written: str, says: str
):
    async with workshop.bot(WRITING):
        question = await asked(discord)
        form = await discord.press(ADA, question, "Edit")
        note = await discord.fill(ADA, question, form, written)
        assert (note["type"], note["data"]["flags"]) == (NOTE, EPHEMERAL)
        assert says in note["data"]["content"]
        await discord.press(ADA, question, "Approve")
        await discord.answer(LOBBY, "Created notes.txt")


async def test_an_edit_that_the_tool_does_not_take_is_asked_about_again(discord: DiscordStandIn, workshop: Workshop):
    async with workshop.bot(WRITING):
        question = await asked(discord)
        form = await discord.press(ADA, question, "Edit")
        await discord.fill(ADA, question, form, '{"path": 7}')
        again = await discord.question(LOBBY, "the edited call is not valid")
        assert again["id"] != question["id"]
        await discord.press(ADA, again, "Approve")
        await discord.answer(LOBBY, "Created notes.txt")


async def test_an_emptied_edit_does_not_run(discord: DiscordStandIn, workshop: Workshop):
    async with workshop.bot(WRITING):
        question = await asked(discord)
        await discord.fill(ADA, question, await discord.press(ADA, question, "Edit"), " ")
        await discord.answer(LOBBY, "you denied it")
    assert not (workshop.folder / "notes.txt").exists()


async def test_answer(discord: DiscordStandIn, workshop: Workshop):
    async with workshop.bot(WRITING):
        question = await asked(discord)
        form = await discord.press(ADA, question, "Answer")
        await discord.fill(ADA, question, form, "Not now, thank you")
        await discord.answer(LOBBY, "you denied it")
    assert not (workshop.folder / "notes.txt").exists()


async def test_who_did_not_ask_cannot_press(discord: DiscordStandIn, workshop: Workshop):
    """Neither somebody who may ask there, nor in a form that somebody else opened."""
    async with workshop.bot(WRITING):
        question = await asked(discord)
        for label in ("Approve", "Edit", "Reject", "Answer"):
            note = await discord.press(BEN, question, label)
            assert (note["type"], note["data"]["content"], note["data"]["flags"]) == (NOTE, NOT_YOURS, EPHEMERAL)
        form = await discord.press(ADA, question, "Answer")
        assert (await discord.fill(BEN, question, form, "yes"))["data"]["content"] == NOT_YOURS
        assert discord.messages[question["id"]]["components"]
    assert not (workshop.folder / "notes.txt").exists()


async def test_who_approves_may_press(discord: DiscordStandIn, workshop: Workshop):
    """With the rights of the one who asked: Eve, alone, may not write."""
    config = {**WRITING, "writes": {"users": [ADA]}}
    async with workshop.bot(config):
        await discord.press(EVE, await asked(discord), "Approve")
        await discord.answer(LOBBY, "Created notes.txt")
    assert (workshop.folder / "notes.txt").exists()


async def test_of_one_who_has_left_nothing_runs(discord: DiscordStandIn, workshop: Workshop):
    async with workshop.bot(WRITING):
        question = await asked(discord)
        discord.gone.add(ADA)
        assert (await discord.press(EVE, question, "Approve"))["data"]["content"] == NOT_THERE
    assert not (workshop.folder / "notes.txt").exists()


async def test_a_second_press_does_nothing(discord: DiscordStandIn, workshop: Workshop):
    async with workshop.bot(WRITING):
        question = await asked(discord)
        await discord.press(ADA, question, "Reject")
        at_once = await discord.press(ADA, question, "Approve")
        await discord.answer(LOBBY, "you denied it")
        later = await discord.press(ADA, question, "Approve")
    assert [one["data"]["content"] for one in (at_once, later)] == [NOT_ANY_MORE] * 2
    assert {one["data"]["flags"] for one in (at_once, later)} == {EPHEMERAL}
    assert not (workshop.folder / "notes.txt").exists()


async def test_a_new_request_is_done_and_the_question_put_again(discord: DiscordStandIn, workshop: Workshop):
    async with workshop.bot(WRITING):
        question = await asked(discord)
        await discord.say(ADA, LOBBY, "Read todo.txt", mentions=[BOT])
        await discord.answer(LOBBY, "Buy milk")
        again = await discord.question(LOBBY, "This still waits")
        left = discord.messages[question["id"]]
        assert (left["components"], "stands below" in left["content"]) == ([], True)
        assert (await discord.press(ADA, question, "Approve"))["data"]["content"] == NOT_ANY_MORE
        assert not (workshop.folder / "notes.txt").exists()
        await discord.press(ADA, again, "Approve")
        await discord.answer(LOBBY, "Created notes.txt")


async def test_the_request_of_somebody_else_leaves_the_question_to_who_was_asked(
    discord: DiscordStandIn, workshop: Workshop
):
    async with workshop.bot(WRITING):
        await asked(discord)
        await discord.say(BEN, LOBBY, f"<@{BOT}> todo.txt", mentions=[BOT])
        again = await discord.question(LOBBY, "This still waits")
        assert again["content"].startswith(f"<@{ADA}>, may this run?")
        assert (await discord.press(BEN, again, "Approve"))["data"]["content"] == NOT_YOURS
        await discord.press(ADA, again, "Approve")
        await discord.answer(LOBBY, "Created notes.txt")


@pytest.mark.parametrize("words", ["/help", "what does it do?", "yes?"])
async def test_what_is_no_reply_has_the_question_put_again(discord: DiscordStandIn, workshop: Workshop, words: str):
    async with workshop.bot(WRITING):
        question = await asked(discord)
        await discord.say(ADA, LOBBY, f"<@{BOT}> {words}", mentions=[BOT])
        await discord.until(lambda: [one for one in discord.by_bot(LOBBY) if one["id"] != question["id"]])
        again = await discord.question(LOBBY, "may this run? ")
        await discord.press(ADA, again, "Approve")
        await discord.answer(LOBBY, "Created notes.txt")


@pytest.mark.parametrize(("words", "runs"), [("yes", True), ("no", False)])
async def test_a_reply_to_the_question_answers_it(discord: DiscordStandIn, workshop: Workshop, words: str, runs: bool):
    async with workshop.bot(WRITING):
        await discord.say(ADA, LOBBY, words, to=await asked(discord))
        await discord.answer(LOBBY, "Created notes.txt" if runs else "you denied it")
    assert (workshop.folder / "notes.txt").exists() is runs


@pytest.mark.parametrize(("words", "runs"), [("yes", True), ("no", False)])
async def test_its_asker_may_also_just_say_so(discord: DiscordStandIn, workshop: Workshop, words: str, runs: bool):
    async with workshop.bot(WRITING):
        await asked(discord)
        await discord.say(ADA, LOBBY, f"<@{BOT}> {words}", mentions=[BOT])
        await discord.answer(LOBBY, "Created notes.txt" if runs else "you denied it")
    assert (workshop.folder / "notes.txt").exists() is runs


async def test_the_yes_of_somebody_else_answers_nothing(discord: DiscordStandIn, workshop: Workshop):
    async with workshop.bot(WRITING):
        question = await asked(discord)
        await discord.say(BEN, LOBBY, f"<@{BOT}> yes", mentions=[BOT])
        await discord.answer(LOBBY, "Only the one who asked")
        assert not (workshop.folder / "notes.txt").exists()
        await discord.press(ADA, question, "Approve")
        await discord.answer(LOBBY, "Created notes.txt")


async def test_several_calls_are_decided_at_once_where_all_are_shown(discord: DiscordStandIn, workshop: Workshop):
    async with workshop.bot(WRITING):
        question = await asked(discord, f'<@{BOT}> Write "hello" to a.txt and write "hello" to b.txt')
        assert len(question["embeds"]) == 2
        await discord.press(ADA, question, "Approve all")
        await discord.answer(LOBBY, "Created b.txt")
    assert [(workshop.folder / name).read_text() for name in ("a.txt", "b.txt")] == ["hello", "hello"]


@pytest.mark.parametrize("presses", [ADA, EVE])
async def test_what_is_remembered_holds_for_the_one_who_asked(
    discord: DiscordStandIn, workshop: Workshop, presses: int
):
    """Neither for others in the channel, nor for somebody who approves there and said it."""
    (workshop.folder / "packetgate.toml").write_text('[policy]\nremember = "always"\n')
    written = workshop.folder / "notes.txt"
    async with workshop.bot(WRITING):
        await discord.press(presses, await asked(discord), "Always")
        await discord.answer(LOBBY, "Created notes.txt")
        for other in (BEN, EVE):
            written.unlink(missing_ok=True)
            await discord.say(other, LOBBY, WRITE, mentions=[BOT])
            question = await discord.question(LOBBY, f"<@{other}>, may this run?")
            assert not written.exists()
            await discord.press(other, question, "Reject")
            await discord.answer(LOBBY, "you denied it")
        answers = len(discord.by_bot(LOBBY))
        await discord.say(ADA, LOBBY, WRITE, mentions=[BOT])
        await discord.until(lambda: len(discord.by_bot(LOBBY)) > answers and written.exists())
