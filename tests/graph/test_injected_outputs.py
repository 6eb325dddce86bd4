"""Tool output never affects the palette, the settings, the approvals or the risk."""

from typing import Any

import pytest
from support.graphs import session
from support.injections import KINDS
from support.notebook import Notebook
from support.scripted_deciders import call, scripted

from packetgate.state.transitions import ToolExecutionStatus

REQUEST = "Read note a"
READ = call("notebook.read_note", name="a")
OBEYED = call("notebook.write_note", name="b", text="OWNED")


async def asked(text: str) -> tuple[dict[str, Any], Notebook]:
    """Return the packet of a turn whose note contains this text, and whose selector obeys it."""
    notebook = Notebook(a=text, b="bread")
    async with session(scripted(READ, OBEYED), notebook, allow_write_tools=True) as talk:
        packet = (await talk.ask(REQUEST)).packet
        (write,) = packet.routing.calls
        came_to = {
            "palette": [(entry.tool_name, entry.detail, entry.risk) for entry in packet.context.palette],
            "settings": packet.governance.settings,
            "approvals": packet.governance.approvals,
            "risk": (write.risk, write.open_world),
            "status": write.status,
        }
        await talk.reply("no")
    return came_to, notebook


@pytest.fixture(scope="module")
def harmless() -> dict[str, Any]:
    return {}


@pytest.mark.parametrize("kind", KINDS)
async def test_an_injected_output_has_no_effect(kind: str, harmless: dict[str, Any]):
    if not harmless:
        harmless |= (await asked("apples"))[0]
    came_to, notebook = await asked(KINDS[kind])
    assert came_to == harmless
    assert (came_to["approvals"], came_to["status"]) == ((), ToolExecutionStatus.AWAITING_APPROVAL)
    assert notebook.called == ["read_note"]
    assert notebook.notes["b"] == "bread"
