"""The fox: an ASCII-art tool is wanted for an image while an image tool stands beside it."""

from dataclasses import replace
from typing import Any

import pytest
from fastmcp import FastMCP
from support.graphs import session
from support.mcp_servers import RawTool, in_process
from support.prompts import call, last, offered, review
from support.scripted_deciders import IntentWhileSelecting, ScriptedSelector, scripted
from support.scripted_deciders import call as wants
from support.scripted_openai import ScriptedOpenAI
from support.studio import ASCII, IMAGE, Studio, approved_turn
from support.telemetry import Telemetry

from packetgate.deciders.choosing import reflex_deciders
from packetgate.deciders.protocols import Deciders
from packetgate.state.packet import CognitionPacket
from packetgate.state.sections import Access

TEXT_ART, PAINTING = call(ASCII, prompt="a fox"), call(IMAGE, prompt="a fox")
OBJECTION = f"`{ASCII}` is for text art; for images there is `{IMAGE}`."


@pytest.fixture
def studio() -> Studio:
    return Studio()


def objections(packet: CognitionPacket) -> list[tuple[str, str, bool]]:
    return [(one.tool_name, one.better_tool, one.mended) for one in packet.routing.corrections]


async def test_by_reflex(studio: Studio):
    packet = await approved_turn(reflex_deciders(), studio.banner, studio.studio)
    assert studio.drawn == [(IMAGE, "fox")]
    assert objections(packet) == [(ASCII, IMAGE, True)]
    assert packet.routing.selected_tool == IMAGE
    assert not packet.routing.widened


async def test_by_reflex_where_there_is_nothing_better(studio: Studio):
    packet = await approved_turn(reflex_deciders(), studio.banner)
    assert studio.drawn == [(ASCII, "fox")]
    assert objections(packet) == []


async def test_by_reflex_with_the_better_tool_off_the_palette(studio: Studio):
    packet = await approved_turn(reflex_deciders(), studio.banner, studio.studio, palette_size=1)
    assert studio.drawn == [(IMAGE, "fox")]
    assert (packet.routing.missed_tools, packet.routing.objections) == ((), (IMAGE,))


async def test_a_model_is_corrected_and_follows(studio: Studio, by_model: Deciders, scripted_openai: ScriptedOpenAI):
    scripted_openai.script(TEXT_ART, PAINTING, review(0.9), "Painted.")
    packet = await approved_turn(by_model, studio.banner, studio.studio)
    assert studio.drawn == [(IMAGE, "a fox")]
    assert f"Corrections:\n- {OBJECTION}" in last(scripted_openai, 1)
    assert packet.response.candidate == "Painted."
    assert scripted_openai.replies == []


async def test_the_better_tool_joins_the_palette(studio: Studio, by_model: Deciders, scripted_openai: ScriptedOpenAI):
    scripted_openai.script(TEXT_ART, PAINTING, review(0.9), "Painted.")
    packet = await approved_turn(by_model, studio.banner, studio.studio, palette_size=1)
    assert "studio__paint" not in offered(scripted_openai, 0)
    assert "studio__paint" in offered(scripted_openai, 1)
    assert [(one.tool_name, one.reason) for one in packet.context.palette] == [(IMAGE, "widened")]
    assert studio.drawn == [(IMAGE, "a fox")]


async def test_a_model_that_insists_is_heard_by_the_review(
    studio: Studio, by_model: Deciders, scripted_openai: ScriptedOpenAI
):
    scripted_openai.script(TEXT_ART, TEXT_ART, review(0.9), "Drawn.")
    packet = await approved_turn(by_model, studio.banner, studio.studio)
    assert studio.drawn == [(ASCII, "a fox")]
    assert not any(entry.is_fallback for entry in packet.reasoning.reflection_log)
    assert scripted_openai.replies == []


async def test_a_model_that_wraps_its_call(studio: Studio, by_model: Deciders, scripted_openai: ScriptedOpenAI):
    wrapped = call("call_mcp_tool", server="studio", name="paint", arguments={"promt": "a fox", "width": "64"})
    scripted_openai.script(wrapped, review(0.9), "Painted.")
    packet = await approved_turn(by_model, studio.banner, studio.studio)
    (made,) = packet.routing.all_calls
    assert (made.tool_name, made.params) == (IMAGE, {"prompt": "a fox", "width": 64})
    assert made.result is not None
    assert made.result.output == "64 pixels of a fox"
    assert scripted_openai.replies == []


async def test_an_objection_is_not_raised_again_in_a_later_pass(studio: Studio):
    first, again = wants(ASCII, prompt="a fox"), wants(ASCII, prompt="a red fox")
    packet = await approved_turn(scripted(first, first, again), studio.banner, studio.studio)
    assert studio.drawn == [(ASCII, "a fox"), (ASCII, "a red fox")]
    assert packet.routing.objections == (IMAGE,)


async def test_no_objection_once_the_image_is_there(studio: Studio):
    deciders = scripted(wants(IMAGE, prompt="a fox"), wants(ASCII, prompt="fox"))
    packet = await approved_turn(deciders, studio.banner, studio.studio)
    assert [name for name, _ in studio.drawn] == [IMAGE, ASCII]
    assert packet.routing.objections == ()


async def test_an_objection_is_no_miss_in_telemetry(studio: Studio, telemetry: Telemetry):
    for deciders in (scripted(wants(ASCII, prompt="a fox"), wants(IMAGE, prompt="a fox")), reflex_deciders()):
        packet = await approved_turn(deciders, studio.banner, studio.studio, palette_size=1)
        assert packet.routing.missed_tools == ()
        assert "packetgate.tools.missed" not in dict(telemetry.named("packetgate select_tool")[0].attributes or {})
        assert "packetgate.misses" not in telemetry.measured()
        telemetry.clear()


NEIGHBOURS = {
    "mail.frobnicate_messages": "Go through the messages.",
    "board.delete_task": "Delete a task from the list of tasks.",
    "studio.editImage": "Edit an image: create another version of it.",
}


@pytest.mark.parametrize("access", list(Access))
@pytest.mark.parametrize("request_", ["List my tasks", "Show the tasks", "Tasks for today", "Create an image of a fox"])
async def test_no_tool_is_recommended_that_does_another_thing_than_was_asked(request_: str, access: Access):
    servers = {name.partition(".")[0]: FastMCP[Any](name.partition(".")[0]) for name in NEIGHBOURS}
    for name, description in NEIGHBOURS.items():
        server, _, tool = name.partition(".")
        servers[server].add_tool(RawTool(name=tool, description=description, parameters={"type": "object"}))
    selector = ScriptedSelector([wants("mail.frobnicate_messages")] * 2)
    deciders = scripted(intent=IntentWhileSelecting(selector, access))
    async with session(replace(deciders, selector=selector), *map(in_process, servers.values())) as talk:
        packet = await talk.say(request_, palette_size=8)
    assert packet.routing.objections == ()
    assert [call.tool_name for call in packet.routing.all_calls] == ["mail.frobnicate_messages"]
