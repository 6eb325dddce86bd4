"""A packet names the first tools of a large catalogue, and counts all tools."""

import pytest
from langgraph.runtime import Runtime
from support.packets import CONTEXT, Shelf, packet, tool

from packetgate.nodes.build_palette import build_palette
from packetgate.state.sections import MAX_NAMED_TOOLS
from packetgate.tools.catalogue.catalogue import Catalogue


@pytest.mark.parametrize(("tools", "named"), [(3, 3), (MAX_NAMED_TOOLS + 1, MAX_NAMED_TOOLS)])
async def test_the_first_tools_are_named_and_all_counted(tools: int, named: int):
    shelf = Shelf(Catalogue([tool(f"shelf.item_{number:05}") for number in range(tools)]))
    context = (await build_palette(packet("get it"), Runtime(context=CONTEXT), lite=None, toolbox=shelf))["context"]
    assert (len(context.available_mcp_tools), context.available_more) == (named, tools - named)
    assert context.available_mcp_tools[0] == "shelf.item_00000"
