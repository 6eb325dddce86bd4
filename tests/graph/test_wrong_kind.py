"""The fox: an ASCII-art tool is wanted for an image while an image tool stands beside it."""

import pytest
from support.prompts import call, intent, last, review, system
from support.scripted_deciders import call as wants
from support.scripted_deciders import scripted
from support.scripted_openai import ScriptedOpenAI
from support.studio import ASCII, IMAGE, Studio, approved_turn

from deciders.choosing import reflex_deciders
from deciders.protocols import Deciders
from state.packet import CognitionPacket

YES, NO = intent(needs_tool=True, access="write"), intent(needs_tool=False)
TEXT_ART, PAINTING = call(ASCII, prompt="a fox"), call(IMAGE, prompt="a fox")
OBJECTION = f"`{ASCII}` is for text art; for images there is `{IMAGE}`."


@pytest.fixture
def studio() -> Studio:
    return Studio()


def objections(packet: CognitionPacket) -> list[tuple[str, str, bool]]:
    return [(one.tool_name, one.better_tool, one.mended) for one in packet.routing.corrections]


async def test_by_reflex(studio: Studio):
    packet = await approved_turn(reflex_deciders(), studio.banner, studio.studio)
    assert studio.drawn == [(IMAGE, "a fox")]
    assert objections(packet) == [(ASCII, IMAGE, True)]
    assert packet.routing.selected_tool == IMAGE
    assert not packet.routing.widened


async def test_by_reflex_where_there_is_nothing_better(studio: Studio):
    packet = await approved_turn(reflex_deciders(), studio.banner)
    assert studio.drawn == [(ASCII, "a fox")]
    assert objections(packet) == []


async def test_by_reflex_with_the_better_tool_off_the_palette(studio: Studio):
    packet = await approved_turn(reflex_deciders(), studio.banner, studio.studio, palette_size=1)
    assert studio.drawn == [(IMAGE, "a fox")]
    assert packet.routing.missed_tools == (IMAGE,)


async def test_a_model_is_corrected_and_follows(studio: Studio, by_model: Deciders, scripted_openai: ScriptedOpenAI):
    scripted_openai.script(YES, TEXT_ART, PAINTING, review(0.9), NO, "Painted.")
    packet = await approved_turn(by_model, studio.banner, studio.studio)
    assert studio.drawn == [(IMAGE, "a fox")]
    assert f"Corrections:\n- {OBJECTION}" in last(scripted_openai, 2)
    assert packet.response.candidate == "Painted."
    assert scripted_openai.replies == []


async def test_the_better_tool_joins_the_palette(studio: Studio, by_model: Deciders, scripted_openai: ScriptedOpenAI):
    scripted_openai.script(YES, TEXT_ART, PAINTING, review(0.9), NO, "Painted.")
    packet = await approved_turn(by_model, studio.banner, studio.studio, palette_size=1)
    assert f"- {IMAGE}: Paint a picture" not in system(scripted_openai, 1)
    assert f"- {IMAGE}: Paint a picture" in system(scripted_openai, 2)
    assert [(one.tool_name, one.reason) for one in packet.context.palette] == [(IMAGE, "widened")]
    assert studio.drawn == [(IMAGE, "a fox")]


async def test_a_model_that_insists_is_heard_by_the_review(
    studio: Studio, by_model: Deciders, scripted_openai: ScriptedOpenAI
):
    scripted_openai.script(YES, TEXT_ART, TEXT_ART, review(0.9), NO, "Drawn.")
    packet = await approved_turn(by_model, studio.banner, studio.studio)
    assert studio.drawn == [(ASCII, "a fox")]
    assert not any(entry.is_fallback for entry in packet.reasoning.reflection_log)
    assert scripted_openai.replies == []


async def test_a_model_that_wraps_its_call(studio: Studio, by_model: Deciders, scripted_openai: ScriptedOpenAI):
    wrapped = call("call_mcp_tool", server="studio", name="paint", arguments={"promt": "a fox", "width": "64"})
    scripted_openai.script(YES, wrapped, review(0.9), NO, "Painted.")
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
    assert packet.routing.objections == (f"wrong_kind {IMAGE}",)


async def test_no_objection_once_the_image_is_there(studio: Studio):
    deciders = scripted(wants(IMAGE, prompt="a fox"), wants(ASCII, prompt="fox"))
    packet = await approved_turn(deciders, studio.banner, studio.studio)
    assert [name for name, _ in studio.drawn] == [IMAGE, ASCII]
    assert packet.routing.objections == ()
