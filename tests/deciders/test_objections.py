"""A tool of the wrong category is objected to once in a turn, if no tool of the right category was used."""

import pytest
from support.packets import CONTEXT, packet, tool
from support.scripted_deciders import call, calls, wanted

from packetgate.deciders.outcome import routing_after_selection
from packetgate.deciders.protocols import Selection
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import ToolCall, ToolRouting
from packetgate.state.sections import Access, Intent
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.catalogue.catalogue import Catalogue

ASCII, COW, IMAGE = "banner.figlet", "banner.cowsay", "studio.generate"
TOOLS = Catalogue(
    [
        tool(ASCII, "text", text="string", description="Make ASCII art of an image."),
        tool(COW, "text", text="string", description="An ASCII cow says it."),
        tool(IMAGE, "prompt", prompt="string", description="Make an image."),
        tool("mail.send_message", "text", text="string", description="Send a message."),
    ]
)
FOX = "Create an image of a fox"
WRONG, RIGHT = call(ASCII, text="fox"), call(IMAGE, prompt="fox")


def asked(prompt: str = FOX, access: Access = Access.WRITE, **routing: object) -> CognitionPacket:
    given = packet(prompt, catalogue=TOOLS, **routing)
    return given.model_copy(update={"intent": Intent(needs_tool=True, access=access)})


def settled(selection: Selection, given: CognitionPacket | None = None) -> ToolRouting:
    return routing_after_selection(selection, given or asked(), TOOLS, CONTEXT)


def test_the_first_objection_adds_the_better_tool_to_the_palette():
    routing = settled(WRONG)
    assert (routing.outcome, routing.calls) == ("miss", ())
    assert (routing.missed_tools, routing.objections) == ((), (IMAGE,))
    assert [(one.problem, one.better_tool, one.is_repaired) for one in routing.corrections] == [
        ("wrong_kind", IMAGE, False)
    ]
    assert not routing.palette_widened


@pytest.mark.parametrize(
    ("selection", "given"),
    [
        (RIGHT, asked()),
        (WRONG, asked(objections=(IMAGE,))),
        (call(COW, text="fox"), asked(objections=(IMAGE,))),
        (calls(wanted(ASCII, text="fox"), wanted(IMAGE, prompt="fox")), asked()),
        (WRONG, asked(past_calls=(ToolCall(tool_name=IMAGE, status=ToolExecutionStatus.USER_DENIED),))),
        (WRONG, asked("Create an image of a fox and ASCII art of it")),
        (WRONG, asked("Make ASCII art of a fox")),
    ],
)
def test_calls_without_an_objection(selection: Selection, given: CognitionPacket):
    routing = settled(selection, given)
    assert (routing.outcome, len(routing.calls)) == ("call", len(selection.calls))
    assert routing.objections == given.routing.objections


def test_two_calls_of_a_wrong_category_are_one_objection():
    routing = settled(calls(wanted(ASCII, text="fox"), wanted(COW, text="fox")))
    assert (routing.missed_tools, routing.objections) == ((), (IMAGE,))
    assert len(routing.corrections) == 2


def test_an_invalid_call_gets_no_objection_to_its_category():
    routing = settled(call(ASCII))
    assert (routing.outcome, [one.problem for one in routing.corrections]) == ("none", ["missing_parameter"])
