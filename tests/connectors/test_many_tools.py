"""A packet names the first tools of a large catalogue, and counts all."""

import pytest

from packetgate.state.packet import CognitionPacket
from packetgate.state.sections import MAX_NAMED_TOOLS, Content, Context, PaletteEntry


def packet(tools: int) -> CognitionPacket:
    """Return a packet whose palette was chosen from so many tools."""
    shown = PaletteEntry(tool_name="shelf.item_00000", detail="full", reason="ranked", risk="read")  # type: ignore[arg-type]
    names = {f"shelf.item_{number:05}": number for number in range(tools)}
    context = Context().with_palette((shown,), tokens=9, left_out=0, available=names, servers=(), subject=(), shift="")
    return CognitionPacket(messages=[], context=context, content=Content(original_prompt="get it"))


@pytest.mark.parametrize(("tools", "named"), [(3, 3), (MAX_NAMED_TOOLS, MAX_NAMED_TOOLS), (10_000, MAX_NAMED_TOOLS)])
def test_the_first_tools_are_named_and_all_counted(tools: int, named: int):
    context = packet(tools).context
    assert (len(context.available_mcp_tools), context.available_count) == (named, tools)
    assert context.available_mcp_tools[0] == "shelf.item_00000"
