"""The messages that the bot answers, their sessions, and the attachments of messages and answers."""

import asyncio
import logging
import re
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.discord_bots import ADA_ALONE, Workshop
from support.discord_payloads import ADA, ADAS, BEN, BENS, BOT, EVE, LAB, LOBBY, THREAD, Payload, session_name
from support.discord_server import SUPPRESS_EMBEDS, DiscordStandIn
from support.graphs import session
from support.media_server import PNG, SCRIPT
from support.notebook import Notebook
from support.pictures import NO_TOOL, png, shown
from support.plain_server import configure, entry
from support.scripted_deciders import ScriptedResponder, call, scripted
from support.scripted_openai import ScriptedOpenAI

from packetgate.connectors.discord.conversations import STOPPED
from packetgate.connectors.discord.messages import MESSAGE_CHARS, split_message
from packetgate.connectors.opening import open_sessions
from packetgate.connectors.sessions import Sessions
from packetgate.deciders.protocols import Answer
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket
from packetgate.tools.catalogue.catalogue import Catalogue

OPENS, MILK = "The gate opens at seven.", "Buy milk."
READ_NOTE = call("notebook.read_note", name="a")


@pytest.mark.parametrize("where", [ADAS, LOBBY, THREAD])
async def test_an_answer_is_one_message_without_pings_and_embeds(
    discord: DiscordStandIn, workshop: Workshop, where: int
):
    async with workshop.bot(ADA_ALONE):
        message = await discord.say(ADA, where, f"<@{BOT}> Read plan.txt", mentions=[BOT])
        answer = await discord.answer(where, OPENS)
    assert discord.by_bot(where) == [answer]
    assert f"```\n{OPENS}\n```" in answer["content"]
    (sent,) = [one for one in discord.arrived if f"/channels/{where}/messages" in one.path]
    assert str(sent.body["message_reference"]["message_id"]) == message["id"]
    assert sent.body["allowed_mentions"]["parse"] == []
    assert sent.body["flags"] == SUPPRESS_EMBEDS
    assert any(one.path == f"/channels/{where}/typing" for one in discord.arrived)


@pytest.mark.parametrize(
    ("words", "says"),
    [("/read plan.txt", OPENS), ("/raed plan.txt", "Did you mean `/read`?"), ("/help", "/write PATH")],
)
async def test_a_command_is_text_after_the_mention(discord: DiscordStandIn, workshop: Workshop, words: str, says: str):
    async with workshop.bot(ADA_ALONE):
        await discord.say(ADA, LOBBY, f"<@{BOT}> {words}", mentions=[BOT])
        await discord.answer(LOBBY, says)


@dataclass(frozen=True)
class Ignored:
    id: str
    who: int = ADA
    content: str = "Read plan.txt"
    more: dict[str, Any] = field(default_factory=dict)


IGNORED = [
    Ignored("to nobody"),
    Ignored("to everyone", more={"mention_everyone": True}),
    Ignored("to somebody else", content=f"<@{BEN}> Read plan.txt", more={"mentions": [BEN]}),
    Ignored("by somebody who is not allowed", who=BEN, more={"mentions": [BOT]}),
    Ignored("by a bot", who=BOT, more={"mentions": [BOT]}),
    Ignored("by a webhook", more={"webhook_id": "5", "mentions": [BOT]}),
    Ignored("by Discord itself", more={"type": 6, "mentions": [BOT]}),
]


async def test_only_messages_of_allowed_people_to_the_bot_are_answered(discord: DiscordStandIn, workshop: Workshop):
    async with workshop.bot(ADA_ALONE):
        for case in IGNORED:
            await discord.say(case.who, LOBBY, case.content, **case.more)
        await discord.say(ADA, LOBBY, "Read plan.txt", to=discord.keep(BEN, LOBBY, "What now?"))
        await discord.say(ADA, LOBBY, "Read todo.txt", mentions=[BOT])
        answer = await discord.answer(LOBBY, MILK)
        posts = [one for one in discord.arrived if (one.method, one.path) == ("POST", f"/channels/{LOBBY}/messages")]
        assert len(posts) == 1
        await discord.say(ADA, LOBBY, "Read plan.txt", to=answer)
        await discord.answer(LOBBY, OPENS)


async def test_without_a_table_nobody_is_answered(
    discord: DiscordStandIn, workshop: Workshop, caplog: pytest.LogCaptureFixture
):
    async with workshop.bot({}):
        await discord.say(ADA, ADAS, "Read plan.txt")
        await discord.command(ADA, ADAS, "reset")
    assert discord.by_bot(ADAS) == []
    assert "[discord.allowed]" in caplog.text


async def test_each_mention_starts_a_session_and_turns_queue_up(discord: DiscordStandIn, workshop: Workshop):
    said = {ADAS: "Hello", LOBBY: "Read plan.txt", THREAD: "Read todo.txt"}
    async with workshop.bot(ADA_ALONE):
        sent = [await discord.say(ADA, where, f"<@{BOT}> {words}", mentions=[BOT]) for where, words in said.items()]
        for where, text in ((ADAS, "Hello!"), (LOBBY, OPENS), (THREAD, MILK)):
            await discord.answer(where, text)
        for words in ("Read plan.txt", "Read todo.txt"):
            await discord.say(ADA, ADAS, words)
        await discord.answer(ADAS, MILK)
    async with open_sessions(workshop.settings) as sessions:
        states = [await sessions.state(session_name(message)) for message in sent]
    assert [state.packet.content.original_prompt for state in states] == ["Read todo.txt", *[*said.values()][1:]]
    _, *later = discord.by_bot(ADAS)
    assert [text in answer["content"] for text, answer in zip((OPENS, MILK), later, strict=True)] == [True] * 2


async def test_a_user_over_the_rate_limit_is_warned_once(discord: DiscordStandIn, workshop: Workshop):
    config = {"allowed": {"users": [ADA, BEN]}, "rate": {"turns": 1, "seconds": 3_600.0}}
    async with workshop.bot(config):
        for _ in range(3):
            await discord.say(ADA, LOBBY, "Read plan.txt", mentions=[BOT])
        await discord.answer(LOBBY, OPENS)
        await discord.say(BEN, LOBBY, "Read todo.txt", mentions=[BOT])
        await discord.answer(LOBBY, MILK)
    assert len([one for one in discord.by_bot(LOBBY) if "again in" in one["content"]]) == 1
    assert len(discord.by_bot(LOBBY)) == 3


async def test_no_text_of_messages_is_logged(
    discord: DiscordStandIn, workshop: Workshop, caplog: pytest.LogCaptureFixture
):
    caplog.set_level("INFO")
    async with workshop.bot(ADA_ALONE):
        await discord.say(BEN, BENS, "larkspur is not for you")
        await discord.say(ADA, ADAS, "Read plan.txt please, dear larkspur")
        await discord.answer(ADAS, OPENS)
    assert f"user {BEN} is not allowed in channel {BENS}" in caplog.text
    assert "larkspur" not in caplog.text
    assert "opens at seven" not in caplog.text


async def attached(workshop: Workshop, first: Payload) -> list[tuple[str, str]]:
    """Return the attachments of the last turn of the conversation that a message started."""
    async with open_sessions(workshop.settings) as sessions:
        packet = (await sessions.state(session_name(first))).packet
    return [(one.name, one.text) for one in packet.content.attachments]


async def test_text_files_are_attached_and_a_note_names_other_files(discord: DiscordStandIn, workshop: Workshop):
    files = [
        discord.attach("notes.md", "Grüße\n".encode()),
        discord.attach("photo.png", b"\x89PNG\xff"),
        discord.attach("huge.log", b"", size=300_000),
        discord.attach("lost.txt", b"x"),
        discord.attach("bom\u202e\n.txt", "\ufeffhello".encode()),
        discord.attach("sixth.txt", b"too many"),
    ]
    del discord.files[files[3]["id"]]
    async with workshop.bot(ADA_ALONE):
        first = await discord.say(ADA, ADAS, "Read plan.txt", attachments=files)
        answer = await discord.answer(ADAS, OPENS)
    assert await attached(workshop, first) == [("notes.md", "Grüße\n"), ("bom??.txt", "hello")]
    notes = [line.split()[1] for line in answer["content"].splitlines() if line.startswith("-# ")]
    assert notes == ["photo.png", "huge.log", "lost.txt", "sixth.txt"]


async def test_pictures_are_shown_to_a_model_with_vision(
    discord: DiscordStandIn, workshop: Workshop, scripted_openai: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPENAI_BASE_URL", scripted_openai.base_url)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    scripted_openai.script(NO_TOOL, "It is grey.")
    pictures = [png(shade=number) for number in range(5)]
    files = [discord.attach(f"{number}.png", data, kind="image/png") for number, data in enumerate(pictures)]
    bot_settings = workshop.settings.model_copy(update={"prime": "openai:scripted"})
    async with open_sessions(bot_settings) as sessions, workshop.bot(ADA_ALONE, sessions):
        await discord.say(ADA, ADAS, "What colour is it?", attachments=files)
        answer = await discord.answer(ADAS, "It is grey.")
    assert shown(scripted_openai) == pictures[:4]
    assert "-# 4.png was left out" in answer["content"]


async def test_a_replied_message_is_attached_unless_the_session_has_it(discord: DiscordStandIn, workshop: Workshop):
    file = discord.attach("notes.md", b"By the oak.")
    other = discord.keep(BEN, LOBBY, "The gate at the lake.", attachments=[file])
    deleted = discord.keep(EVE, LAB, "What?")
    async with workshop.bot(ADA_ALONE):
        first = await discord.say(ADA, LOBBY, f"<@!{BOT}> Read plan.txt", mentions=[BOT], to=other)
        answer = await discord.answer(LOBBY, OPENS)
        quoted = [("earlier message of ben", "The gate at the lake."), ("notes.md", "By the oak.")]
        assert await attached(workshop, first) == quoted
        await discord.say(ADA, LOBBY, "Read todo.txt", to=answer)
        await discord.answer(LOBBY, MILK)
        reference = {"message_reference": {"message_id": deleted["id"], "channel_id": str(LAB)}, "type": 19}
        second = await discord.say(ADA, LAB, "Read plan.txt", mentions=[BOT], **reference)
        await discord.answer(LAB, OPENS)
    assert await attached(workshop, first) == []
    assert await attached(workshop, second) == []


async def test_only_pictures_of_their_declared_type_are_uploaded(discord: DiscordStandIn, workshop: Workshop):
    config = configure(workshop.folder / "mcp.json", builtin=True, media=entry(SCRIPT))
    bot_settings = workshop.settings.model_copy(update={"mcp_config": config})
    async with open_sessions(bot_settings) as sessions, workshop.bot(ADA_ALONE, sessions):
        for what in ("page", "poster", "blob", "sound"):
            await discord.say(ADA, LAB, f"<@{BOT}> Get the {what} with media.get_{what}", mentions=[BOT])
            assert "is not shown here" in (await discord.answer(LAB, f"media.get_{what}"))["content"]
        assert not [one for one in discord.arrived if one.files]
        await discord.say(ADA, LOBBY, f"<@{BOT}> Get the picture with media.get_picture", mentions=[BOT])
        await discord.answer(LOBBY, "drawn")
        (sent,) = await discord.until(lambda: [one for one in discord.arrived if one.files])
    assert (sent.path, sent.files) == (f"/channels/{LOBBY}/messages", {"image-1.png": PNG})


class FailingResponder(ScriptedResponder):
    """Raises an error if the request asks for an error."""

    async def __call__(self, packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext) -> Answer:
        if "fail" in packet.content.original_prompt:
            raise ZeroDivisionError("/home/secret")
        return await super().__call__(packet, catalogue, context)


def waiting_notebook() -> Notebook:
    """Return a notebook whose reads wait for a signal of the test."""
    notebook = Notebook()
    notebook.barrier = asyncio.Barrier(2)
    return notebook


async def test_a_stopped_bot_notifies_waiting_users(discord: DiscordStandIn, workshop: Workshop):
    async with session(scripted(READ_NOTE), waiting_notebook()) as talk:
        async with workshop.bot(ADA_ALONE, Sessions(talk.graph)):
            await discord.say(ADA, ADAS, "Read a")
            await discord.until(lambda: any(one.path == f"/channels/{ADAS}/typing" for one in discord.arrived))
        assert [one["content"] for one in discord.by_bot(ADAS)] == [STOPPED]


async def test_a_failed_turn_is_reported_without_details_and_the_next_runs(
    discord: DiscordStandIn, workshop: Workshop, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.ERROR)
    deciders = scripted(responder=FailingResponder("All is well."))
    async with session(deciders, Notebook()) as talk, workshop.bot(ADA_ALONE, Sessions(talk.graph)):
        await discord.say(ADA, ADAS, "Please fail")
        report = await discord.answer(ADAS, "Internal error in packet")
        await discord.say(ADA, ADAS, "And now?")
        await discord.answer(ADAS, "All is well.")
    assert "secret" not in report["content"]
    assert "ZeroDivisionError" in caplog.text


async def test_a_long_answer_is_several_messages_with_complete_code_blocks(discord: DiscordStandIn, workshop: Workshop):
    code = "\n".join(f"line_{number} = {number}  # <@{BEN}> @everyone" for number in range(120))
    deciders = scripted(responder=ScriptedResponder(f"Here it is:\n```python\n{code}\n```\nThat is all."))
    async with session(deciders, Notebook()) as talk, workshop.bot(ADA_ALONE, Sessions(talk.graph)):
        await discord.say(ADA, ADAS, "Show me the code")
        await discord.answer(ADAS, "That is all.")
    sent = [one["content"] for one in discord.by_bot(ADAS)]
    assert all(len(one) <= 2_000 and one.count("```") == 2 for one in sent)
    assert all(one.startswith("```python\n") for one in sent[1:])
    assert [line for one in sent for line in one.splitlines() if line.startswith("line_")] == code.splitlines()


@pytest.mark.parametrize(
    ("opening", "prefix", "closing", "again"),
    [
        ("```typescript", "", "```", "```typescript"),
        ("- item\n  ```py", "  ", "  ```", "  ```py"),
        ("- item\n\n      ```py", "      ", "      ```", "      ```py"),
        ("1. ```sh", "   ", "```", "```sh"),
        ("> said\n> ```", "> ", "> ```", "> ```"),
        ("- a\n  > ```c++", "  > ", "  > ```", "  > ```c++"),
        ("> > ```js", "> > ", "> > ```", "> > ```js"),
        ("see ```word word", "", "```", "```"),
    ],
)
def test_a_code_block_is_closed_and_opened_as_it_was(opening: str, prefix: str, closing: str, again: str):
    lines = [f"{prefix}line {number}" for number in range(60)]
    first, *more = split_message("\n".join([opening, *lines, closing, "after"]), 300)
    assert first.startswith(opening)
    assert first.endswith(f"\n{closing}")
    assert all(one.startswith(f"{again}\n{prefix}line ") for one in more)
    assert all(one.endswith(f"\n{closing}") for one in more[:-1])
    assert more[-1].endswith(f"{prefix}line 59\n{closing}\nafter")


@pytest.mark.parametrize(
    "text",
    ["```x``` and " + "word " * 99, "three backticks: ``` and " + "word " * 99, "> ```\n> code\n" + "word " * 99],
)
def test_text_outside_a_code_block_stays_outside(text: str):
    first, *more = split_message(text, 300)
    assert more
    assert not any("```" in one for one in more)
    assert "word\n```" not in first


LINES = ["word " * 9, "x" * 300, "`a` ``` b", "", "é漢字 " * 9, "```python", "```", f"```{'l' * 90}", "> ```", "> q"]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(LINES), max_size=60), st.sampled_from([300, 500, MESSAGE_CHARS]))
def test_no_message_is_too_long_or_blank_and_nothing_is_lost(lines: list[str], limit: int):
    text = "\n".join(lines)
    pieces = split_message(text, limit)
    assert all(piece.strip() and len(piece) <= limit for piece in pieces)
    may_be_unclosed = (
        text.count("```") % 2 or "> ```" in lines
    )  # a block ends at the end of its quote, and the next mark is text
    assert sum(one.count("```") % 2 for one in pieces) <= may_be_unclosed
    letters = re.compile(r"[`>\s]|python|l+")
    assert letters.sub("", "".join(pieces)) == letters.sub("", text)
