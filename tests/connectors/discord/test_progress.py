"""A turn that takes its time is seen to go on; one that breaks is told, and the next one runs."""

import logging

import pytest
from support.discord_bots import ADA_ALONE, Workshop
from support.discord_payloads import ADA, ADAS
from support.discord_server import DiscordStandIn
from support.gated_notebook import GatedNotebook
from support.graphs import session
from support.notebook import Notebook
from support.scripted_deciders import ScriptedResponder, call, scripted

from packetgate.connectors.discord.conversing import STOPPED
from packetgate.connectors.sessions import Sessions, SessionState
from packetgate.deciders.protocols import Answer
from packetgate.state.context import RoutingContext
from packetgate.state.errors import PacketVersionError
from packetgate.state.packet import CognitionPacket
from packetgate.tools.catalogue.catalogue import Catalogue

READ = call("notebook.read_note", name="a")


class Breaking(ScriptedResponder):
    """Breaks once, with words that are nobody's business."""

    async def __call__(self, packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext) -> Answer:
        if "break" in packet.content.original_prompt:
            raise ZeroDivisionError("/home/secret")
        return await super().__call__(packet, catalogue, context)


async def test_the_message_says_what_goes_on_and_then_the_answer(discord: DiscordStandIn, workshop: Workshop):
    notebook = GatedNotebook()
    async with session(scripted(READ), notebook) as talk, workshop.bot(ADA_ALONE, Sessions(talk.graph)):
        await discord.say(ADA, ADAS, "Read a")
        shown = await discord.answer(ADAS, "running it")
        notebook.gate.set()
        answer = await discord.answer(ADAS, "apples")
    assert shown["id"] == answer["id"]
    (first,) = [one for one in discord.arrived if one.path == f"/channels/{ADAS}/messages"]
    assert first.body["content"] == "*reading …*"


async def test_a_bot_that_is_stopped_tells_who_waits(discord: DiscordStandIn, workshop: Workshop):
    async with session(scripted(READ), GatedNotebook()) as talk:
        async with workshop.bot(ADA_ALONE, Sessions(talk.graph)):
            await discord.say(ADA, ADAS, "Read a")
            await discord.answer(ADAS, "running it")
        assert [one["content"] for one in discord.by_bot(ADAS)] == [STOPPED]


async def test_a_turn_that_breaks_is_told_in_a_line_and_ends_nothing_else(
    discord: DiscordStandIn, workshop: Workshop, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.ERROR)
    async with session(scripted(responder=Breaking("All is well.")), Notebook()) as talk:
        async with workshop.bot(ADA_ALONE, Sessions(talk.graph)):
            await discord.say(ADA, ADAS, "Please break")
            told = await discord.answer(ADAS, "Something went wrong")
            await discord.say(ADA, ADAS, "And now?")
            await discord.answer(ADAS, "All is well.")
        history = [one async for one in talk.graph.aget_state_history(Sessions(talk.graph).config(f"discord:{ADAS}"))]
    broken = {one.values["header"].packet_id for one in history if "header" in one.values}
    assert [packet for packet in broken if f"`{packet}`" in told["content"]]
    assert "secret" not in told["content"]
    assert "ZeroDivisionError" in caplog.text


async def test_an_answer_whose_message_was_deleted_goes_into_a_new_one(discord: DiscordStandIn, workshop: Workshop):
    notebook = GatedNotebook()
    async with session(scripted(READ), notebook) as talk, workshop.bot(ADA_ALONE, Sessions(talk.graph)):
        await discord.say(ADA, ADAS, "Read a")
        shown = await discord.answer(ADAS, "running it")
        del discord.messages[shown["id"]]
        notebook.gate.set()
        assert (await discord.answer(ADAS, "apples"))["id"] != shown["id"]


class Unreadable(Sessions):
    """Sessions that a newer Packetgate wrote."""

    async def state(self, session: str) -> SessionState:
        raise PacketVersionError("packet version 99 is newer")


async def test_a_session_that_cannot_be_read_is_told(discord: DiscordStandIn, workshop: Workshop):
    async with session(scripted(), Notebook()) as talk, workshop.bot(ADA_ALONE, Unreadable(talk.graph)):
        await discord.say(ADA, ADAS, "Read a")
        await discord.answer(ADAS, "Something went wrong with packet `unknown`")
        assert "Something went wrong" in await discord.command(ADA, ADAS, "why")
