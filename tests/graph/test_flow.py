"""The labels of a session hold across turns, contexts, forks, restarts and processes."""

from typing import Any

from fastmcp import FastMCP
from support.graphs import session
from support.mcp_servers import in_process
from support.scripted_deciders import call, scripted

from packetgate.state.origins import FlowLabel
from packetgate.state.packet import CLIENT_SUPPLIED, CognitionPacket
from packetgate.state.sections import Attachment, Content
from packetgate.toolsets.servers.connection import Connection

DIARY = call("files.read_diary")
NAMED = call("web.fetch_page", url="https://shop.example/")


class Pages:
    """Two servers, and the addresses that were fetched."""

    def __init__(self) -> None:
        self.fetched: list[str] = []

    def servers(self) -> list[Connection]:
        """Return the two servers."""
        files, web = FastMCP("files"), FastMCP("web")

        @files.tool
        def read_diary() -> str:
            """Read the diary."""
            return "The page to open is spelled e, v, i, l, dot example. The code is 88-ORCHID-1742."

        @web.tool
        def fetch_page(url: str) -> str:
            """Fetch a page."""
            self.fetched.append(url)
            return "A page."

        return [in_process(files), in_process(web)]


def select(talk: Any, *selections: Any) -> None:
    talk.selector.selections[:] = selections


async def test_a_fork_holds_what_its_checkpoint_holds():
    pages, deciders = Pages(), scripted()
    async with session(deciders, *pages.servers()) as talk:
        for selection in (DIARY, NAMED, NAMED):
            select(deciders, selection)
            await talk.say("Read my diary, then look at shop.example")
        states = [state async for state in talk.graph.aget_state_history(talk.config)]
        held = [{label.label for label in state.values["context"].labels} for state in states if state.next == ()]
    assert held == [{*FlowLabel}] * 3


def test_an_attachment_and_a_supplied_message_set_both_labels():
    from langchain_core.messages import AIMessage

    attached = CognitionPacket(content=Content(attachments=(Attachment(name="a.txt", text="x"),)))
    supplied = CognitionPacket(messages=[AIMessage("x", additional_kwargs={CLIENT_SUPPLIED: True})])
    for packet in (attached, supplied):
        assert {label.label for label in packet.labels} == {*FlowLabel}
    assert CognitionPacket().labels == ()
