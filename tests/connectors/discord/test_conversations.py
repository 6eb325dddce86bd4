"""Reply chains: the messages of a conversation, and their authors."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from langchain_core.messages import HumanMessage
from langgraph.store.memory import InMemoryStore
from support.discord_bots import Workshop
from support.discord_payloads import ADA, ADAS, BEN, BOT, EVE, LAB, LOBBY, THREAD, Payload
from support.discord_server import DiscordStandIn
from support.graphs import session
from support.notebook import Notebook
from support.scripted_deciders import ScriptedResponder, scripted

from packetgate.connectors.sessions import Sessions
from packetgate.deciders.protocols import Answer
from packetgate.state.context import RoutingContext
from packetgate.state.origins import FlowLabel
from packetgate.state.packet import CognitionPacket, is_user_message
from packetgate.tools.catalogue.catalogue import Catalogue

EVERYONE = {"allowed": {"users": [ADA, BEN]}}


class Retelling(ScriptedResponder):
    """Answers with the conversation: the user's own words, others' words in brackets, and `!` for untrusted text."""

    async def __call__(self, packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext) -> Answer:
        said = [one for one in packet.conversation if isinstance(one, HumanMessage)]
        words = [one.text if is_user_message(one) else f"[{one.text}]" for one in said]
        quoted = [f"({one.text})" for one in packet.content.attachments]
        is_untrusted = any(one.label is FlowLabel.UNTRUSTED for one in packet.labels)
        return Answer(text=" ".join([*words, *quoted]) + "!" * is_untrusted, confidence=0.8, decided_by="model")


@dataclass(frozen=True)
class Line:
    """A message, the line to which it replies (if negative, to the bot's answer to that line), and the answer."""

    who: int
    text: str
    heard: str
    to: int = 0
    where: int = LOBBY
    mentions: bool = True


CHAINS = {
    "a reply continues, and a mention starts anew": [
        Line(ADA, "one", "one"),
        Line(ADA, "two", "one two", to=-1, mentions=False),
        Line(ADA, "three", "one two three", to=-2),
        Line(ADA, "anew", "anew"),
        Line(ADA, "more", "anew more", to=-4),
    ],
    "a reply to an earlier message branches": [
        Line(ADA, "one", "one"),
        Line(ADA, "two", "one two", to=-1),
        Line(ADA, "other", "one other", to=-1),
        Line(ADA, "third", "one third", to=1),
        Line(ADA, "three", "one two three", to=-2),
        Line(ADA, "others", "one other others", to=-3),
    ],
    "the words of other people are data": [
        Line(ADA, "one", "one"),
        Line(BEN, "two", "[one] two!", to=-1),
        Line(BEN, "three", "[one] two three!", to=-2),
        Line(ADA, "four", "one [two] [three] four!", to=-3),
        Line(ADA, "five", "one five", to=-1),
    ],
    "a message outside a conversation is quoted": [
        Line(BEN, "two", "two"),
        Line(EVE, "one", ""),
        Line(ADA, "three", "three (one)!", to=2),
        Line(ADA, "four", "three four!", to=-3),
    ],
    "a direct message continues, and a mention there starts anew": [
        Line(ADA, "one", "one", where=ADAS, mentions=False),
        Line(ADA, "two", "one two", where=ADAS, mentions=False),
        Line(ADA, "anew", "anew", where=ADAS),
        Line(ADA, "more", "anew more", where=ADAS, mentions=False),
        Line(ADA, "three", "one two three", to=-2, where=ADAS, mentions=False),
        Line(ADA, "four", "one two three four", where=ADAS, mentions=False),
    ],
    "a thread is one conversation": [
        Line(ADA, "one", "one", where=THREAD),
        Line(BEN, "two", "[one] two!", where=THREAD),
        Line(ADA, "three", "one [two] three!", where=THREAD),
        Line(ADA, "four", "one four", to=-1, where=THREAD),
        Line(ADA, "elsewhere", "elsewhere"),
    ],
}


@asynccontextmanager
async def retelling(workshop: Workshop) -> AsyncIterator[None]:
    deciders = scripted(responder=Retelling(""))
    async with (
        session(deciders, Notebook(), store=InMemoryStore()) as talk,
        workshop.bot(EVERYONE, Sessions(talk.graph)),
    ):
        yield


@pytest.mark.parametrize("lines", CHAINS.values(), ids=CHAINS)
async def test_a_reply_continues_the_conversation_of_its_message(
    discord: DiscordStandIn, workshop: Workshop, lines: list[Line]
):
    said: list[Payload] = []
    answers: list[Payload] = []
    async with retelling(workshop):
        for line in lines:
            chosen = said[line.to - 1] if line.to > 0 else answers[-line.to - 1] if line.to else None
            reply = {"to": chosen} if chosen else {}
            mentions = [BOT] if line.mentions else []
            said.append(await discord.say(line.who, line.where, line.text, mentions=mentions, **reply))
            count = len(discord.by_bot(line.where))
            if line.heard:
                await discord.until(lambda line=line, count=count: len(discord.by_bot(line.where)) > count)
            answers.append((discord.by_bot(line.where) or [{}])[-1])
            assert not line.heard or answers[-1]["content"] == line.heard


async def test_a_thread_continues_from_the_message_that_it_starts_from(discord: DiscordStandIn, workshop: Workshop):
    async with retelling(workshop):
        await discord.say(ADA, LOBBY, "one", mentions=[BOT], id=str(THREAD))
        await discord.answer(LOBBY, "one")
        for words, heard in (("two", "one two"), ("three", "one two three")):
            await discord.say(ADA, THREAD, words, mentions=[BOT])
            await discord.answer(THREAD, heard)


async def test_two_replies_at_once_to_one_message_are_two_branches(discord: DiscordStandIn, workshop: Workshop):
    async with retelling(workshop):
        await discord.say(ADA, LOBBY, "one", mentions=[BOT])
        first = await discord.answer(LOBBY, "one")
        for words in ("two", "other"):
            await discord.say(ADA, LOBBY, words, to=first)
        await discord.until(lambda: len(discord.by_bot(LOBBY)) == 3)
    assert {one["content"] for one in discord.by_bot(LOBBY)} == {"one", "one two", "one other"}


async def test_a_forwarded_message_opens_no_conversation_of_another_channel(
    discord: DiscordStandIn, workshop: Workshop
):
    async with retelling(workshop):
        first = await discord.say(ADA, ADAS, "secret")
        await discord.answer(ADAS, "secret")
        reference = {"type": 1, "message_id": first["id"], "channel_id": str(ADAS)}
        await discord.say(BEN, LAB, "what?", mentions=[BOT], message_reference=reference)
        await discord.until(lambda: discord.by_bot(LAB))
    assert [one["content"] for one in discord.by_bot(LAB)] == ["what?"]
