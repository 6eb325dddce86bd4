"""What comes along with a message, and what of an answer goes where."""

import pytest
from support.discord_bots import ADA_ALONE, Workshop
from support.discord_payloads import ADA, ADAS, BEN, BOT, EVE, LOBBY
from support.discord_server import DiscordStandIn
from support.graphs import session
from support.notebook import Notebook
from support.pictures import NO_TOOL, png, shown
from support.scripted_deciders import ScriptedResponder, scripted
from support.scripted_openai import ScriptedOpenAI

from packetgate.connectors.opening import open_sessions
from packetgate.connectors.sessions import Sessions


async def offered(workshop: Workshop, where: int) -> list[tuple[str, str]]:
    """Return what the last turn was offered beside the words."""
    async with open_sessions(workshop.settings) as sessions:
        packet = (await sessions.state(f"discord:{where}")).packet
    return [(one.name, one.text) for one in packet.content.attachments]


async def test_text_files_are_offered_and_others_named(discord: DiscordStandIn, workshop: Workshop):
    files = [
        discord.attach("notes.md", "Grüße\n".encode()),
        discord.attach("photo.png", b"\x89PNG\xff"),
        discord.attach("zero.bin", b"a\0b"),
        discord.attach("huge.log", b"", size=300_000),
        discord.attach("bom\u202e\n.txt", "\ufeffhello".encode()),
        discord.attach("sixth.txt", b"too many"),
    ]
    async with workshop.bot(ADA_ALONE):
        await discord.say(ADA, ADAS, "Read plan.txt", attachments=files)
        answer = await discord.answer(ADAS, "opens at seven")
    assert await offered(workshop, ADAS) == [("notes.md", "Grüße\n"), ("bom??.txt", "hello")]
    left_out = [line for line in answer["content"].splitlines() if line.startswith("-# ")]
    assert left_out == [
        "-# photo.png was left out: it is neither text in UTF-8 nor a picture (PNG, JPEG, GIF, WebP)",
        "-# zero.bin was left out: it is neither text in UTF-8 nor a picture (PNG, JPEG, GIF, WebP)",
        "-# huge.log was left out: it has 300,000 bytes, 200,000 are the most",
        "-# sixth.txt was left out: 5 files are the most",
    ]


async def test_pictures_are_shown_to_a_model_that_sees(
    discord: DiscordStandIn, workshop: Workshop, scripted_openai: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPENAI_BASE_URL", scripted_openai.base_url)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    scripted_openai.script(NO_TOOL, "It is grey.")
    large, pictures = png(shade=9).ljust(300_000), [png(shade=number) for number in range(4)]
    files = [
        discord.attach("large.png", large, kind="image/png"),
        *(discord.attach(f"{number}.png", data, kind="image/png") for number, data in enumerate(pictures)),
        discord.attach("sixth.png", png(), kind="image/png"),
    ]
    settings = workshop.settings.model_copy(update={"prime": "openai:scripted"})
    async with open_sessions(settings) as sessions, workshop.bot(ADA_ALONE, sessions):
        await discord.say(ADA, ADAS, "What colour is it?", attachments=files)
        answer = await discord.answer(ADAS, "It is grey.")
    assert shown(scripted_openai) == [large, *pictures[:3]]
    left_out = [line for line in answer["content"].splitlines() if line.startswith("-# ")]
    assert left_out == [
        "-# 3.png was left out: 4 pictures are the most",
        "-# sixth.png was left out: 5 files are the most",
    ]


async def test_a_file_that_cannot_be_downloaded_is_named(discord: DiscordStandIn, workshop: Workshop):
    lost = discord.attach("lost.txt", b"x")
    del discord.files[lost["id"]]
    async with workshop.bot(ADA_ALONE):
        await discord.say(ADA, ADAS, "", attachments=[lost])
        await discord.answer(ADAS, "lost.txt was left out: it cannot be downloaded")


async def test_a_chain_of_replies_is_offered_oldest_first(discord: DiscordStandIn, workshop: Workshop):
    first = discord.keep(EVE, LOBBY, "Which gate?")
    second = discord.keep(BEN, LOBBY, "The one at the lake.", to=first)
    async with workshop.bot(ADA_ALONE):
        await discord.say(ADA, LOBBY, f"<@!{BOT}> Read plan.txt", mentions=[BOT], to=second)
        await discord.answer(LOBBY, "opens at seven")
    assert await offered(workshop, LOBBY) == [
        ("earlier message of eve", "Which gate?"),
        ("earlier message of ben", "The one at the lake."),
    ]


async def test_of_a_chain_what_the_session_holds_is_not_offered_again(discord: DiscordStandIn, workshop: Workshop):
    async with workshop.bot(ADA_ALONE):
        asked = await discord.say(ADA, ADAS, "Read plan.txt")
        answer = await discord.answer(ADAS, "opens at seven")
        aside = discord.keep(ADA, ADAS, "Never mind.", to={**answer, "message_reference": None, "type": 0})
        await discord.say(ADA, ADAS, "Read todo.txt", to=aside)
        await discord.answer(ADAS, "Buy milk")
    assert asked["id"] in discord.messages
    assert await offered(workshop, ADAS) == [("earlier message of ada", "Never mind.")]


async def test_a_deleted_message_ends_the_chain(discord: DiscordStandIn, workshop: Workshop):
    gone = discord.keep(EVE, LOBBY, "Which gate?")
    reply = discord.keep(BEN, LOBBY, "That one.", to=gone)
    del discord.messages[gone["id"]]
    async with workshop.bot(ADA_ALONE):
        await discord.say(ADA, LOBBY, "Read plan.txt", mentions=[BOT], to={**reply, "referenced_message": None})
        await discord.answer(LOBBY, "opens at seven")
    assert await offered(workshop, LOBBY) == [("earlier message of ben", "That one.")]


async def test_a_long_answer_goes_into_several_messages_with_whole_code_blocks(
    discord: DiscordStandIn, workshop: Workshop
):
    code = "\n".join(f"line_{number} = {number}  # <@{BEN}> @everyone" for number in range(120))
    answer = f"Here it is:\n```python\n{code}\n```\nThat is all."
    deciders = scripted(responder=ScriptedResponder(answer))
    async with session(deciders, Notebook()) as talk, workshop.bot(ADA_ALONE, Sessions(talk.graph)):
        await discord.say(ADA, ADAS, "Show me the code")
        await discord.answer(ADAS, "That is all.")
    sent = [one["content"] for one in discord.by_bot(ADAS)]
    assert len(sent) == 3
    assert all(len(one) <= 2_000 and one.count("```") == 2 for one in sent)
    assert all(one.startswith("```python\n") for one in sent[1:])
    assert [line for one in sent for line in one.splitlines() if line.startswith("line_")] == code.splitlines()
    posts = [one for one in discord.arrived if one.path == f"/channels/{ADAS}/messages"]
    assert all(one.body["allowed_mentions"]["parse"] == [] for one in posts)


@pytest.mark.parametrize("method", ["POST", "PATCH"])
async def test_a_rate_limit_is_waited_out(discord: DiscordStandIn, workshop: Workshop, method: str):
    discord.limit(method, rf"/channels/{ADAS}/messages(/\d+)?", 0.05)
    async with workshop.bot(ADA_ALONE):
        await discord.say(ADA, ADAS, "Read plan.txt")
        await discord.answer(ADAS, "opens at seven")
    assert [one.path for one in discord.arrived if one.method == "429"]
    assert len(discord.by_bot(ADAS)) == 1
