"""An approval applies to one definition on one server: a call that changed since the question is asked about again."""

from fastmcp.client.transports import FastMCPTransport
from langgraph.checkpoint.memory import InMemorySaver
from support.graphs import session
from support.notebook import Notebook
from support.scripted_deciders import call, scripted

from packetgate.gate.answers import CALL_CHANGED
from packetgate.graph.checkpoints import PacketSerializer
from packetgate.toolsets.servers.config import ServerConfig
from packetgate.toolsets.servers.connection import Connection

WRITE = call("notebook.write_note", name="a", text="avocado")


async def test_the_same_tool_of_another_server_is_asked_about_again(notebook: Notebook):
    saver = InMemorySaver(serde=PacketSerializer())
    async with session(scripted(WRITE), notebook, checkpointer=saver, allow_write_tools=True) as talk:
        first = await talk.ask("Write avocado to a")
    other = Notebook()
    elsewhere = Connection(ServerConfig("notebook", {"cwd": "elsewhere"}), lambda: FastMCPTransport(other.server))
    async with session(scripted(), elsewhere, checkpointer=saver) as talk:
        again = await talk.ask_again("yes")
        assert other.calls == []
        assert again.question["problem"] == f"notebook.write_note: {CALL_CHANGED}"
        assert again.question["question_id"] != first.question["question_id"]
        packet = await talk.reply("yes")
    assert other.called == ["write_note"]
    assert [one.outcome.value for one in packet.governance.approvals] == ["approved"], "the first was of another tool"
