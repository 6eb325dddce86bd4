"""The fox: an ASCII-art tool is wanted for an image while an image tool stands beside it."""

import pytest
from support.prompts import call, last, review
from support.scripted_deciders import call as wants
from support.scripted_deciders import scripted
from support.scripted_openai import ScriptedOpenAI
from support.studio import ASCII, IMAGE, Studio, approved_turn

from packetgate.deciders.choosing import reflex_deciders
from packetgate.deciders.protocols import Deciders
from packetgate.state.packet import CognitionPacket

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


async def test_a_model_is_corrected_and_follows(studio: Studio, by_model: Deciders, scripted_openai: ScriptedOpenAI):
    scripted_openai.script(TEXT_ART, PAINTING, review(0.9), "Painted.")
    packet = await approved_turn(by_model, studio.banner, studio.studio)
    assert studio.drawn == [(IMAGE, "a fox")]
    assert f"Corrections:\n- {OBJECTION}" in last(scripted_openai, 1)
    assert packet.response.candidate == "Painted."
    assert scripted_openai.replies == []


async def test_a_model_that_insists_is_heard_by_the_review(
    studio: Studio, by_model: Deciders, scripted_openai: ScriptedOpenAI
):
    scripted_openai.script(TEXT_ART, TEXT_ART, review(0.9), "Drawn.")
    packet = await approved_turn(by_model, studio.banner, studio.studio)
    assert studio.drawn == [(ASCII, "a fox")]
    assert not any(entry.is_fallback for entry in packet.reasoning.reflection_log)
    assert scripted_openai.replies == []


async def test_an_objection_is_not_raised_again_in_a_later_pass(studio: Studio):
    first, again = wants(ASCII, prompt="a fox"), wants(ASCII, prompt="a red fox")
    packet = await approved_turn(scripted(first, first, again), studio.banner, studio.studio)
    assert studio.drawn == [(ASCII, "a fox"), (ASCII, "a red fox")]
    assert packet.routing.objections == (IMAGE,)
