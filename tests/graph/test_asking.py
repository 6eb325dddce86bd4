"""One question covers all calls that need the user."""

from support.graphs import session
from support.notebook import Notebook
from support.scripted_deciders import call, scripted

from packetgate.state.sections import PacketState

WRITE = call("notebook.write_note", name="a", text="avocado")
ASK = "Write avocado to a"


async def test_the_payload_has_the_form_of_front_ends(notebook: Notebook):
    async with session(scripted(WRITE), notebook, allow_write_tools=True) as talk:
        asked = await talk.ask(ASK)
    (request,) = asked.question["action_requests"]
    assert asked.question["kind"] == "approval"
    assert request["name"] == "notebook.write_note"
    assert request["args"] == request["arguments"] == {"name": "a", "text": "avocado"}
    assert "notebook.write_note (write), review score 0.90" in request["description"]
    assert asked.question["review_configs"] == [
        {"action_name": "notebook.write_note", "allowed_decisions": ["approve", "edit", "reject", "respond"]}
    ]
    assert asked.packet.status.state is PacketState.AWAITING_USER
    assert asked.packet.status.next_steps == ("ask_user",)
