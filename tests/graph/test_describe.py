"""After `describe`, the next selection sees the full description of the requested tools."""

import pytest
from support.graphs import run_once
from support.notebook import Notebook
from support.scripted_deciders import call, describe, scripted

from packetgate.state.packet import CognitionPacket

READ_A = call("notebook.read_note", name="a")


def shown(packet: CognitionPacket) -> dict[str, tuple[str, str]]:
    return {entry.tool_name: (entry.shown, entry.reason) for entry in packet.context.palette}


async def run(notebook: Notebook, *selections, **context):
    deciders = scripted(*selections)
    packet = await run_once(deciders, "Do something with mail", notebook, **context)
    return packet, deciders.selector.seen


@pytest.mark.parametrize("wish", ["notebook.check_weather", "check_weather", "notebook_check_weather"])
async def test_the_next_selection_sees_the_full_description(notebook: Notebook, wish: str):
    packet, (first, second) = await run(notebook, describe(wish), READ_A, palette_token_budget=170)
    assert shown(first)["notebook.check_weather"] == ("brief", "default")
    assert shown(second)["notebook.check_weather"] == ("full", "described")
    assert packet.routing.described_tools == ("notebook.check_weather",)


async def test_requests_for_descriptions_are_limited(notebook: Notebook):
    once = describe("notebook.check_weather")
    packet, seen = await run(notebook, once, once, once, READ_A)
    assert len(seen) == 3
    assert packet.routing.describe_rounds == 2
    assert "Selection repeated describe" in packet.response.candidate
    assert notebook.calls == []


async def test_a_described_tool_joins_the_palette(notebook: Notebook):
    weather = call("notebook.check_weather", city="Bern")
    _, (first, second) = await run(notebook, describe("notebook.check_weather"), weather, palette_size=1)
    assert "notebook.check_weather" not in first.context.palette_names
    assert second.context.palette_names == {"notebook.check_weather"}
    assert notebook.called == ["check_weather"]
