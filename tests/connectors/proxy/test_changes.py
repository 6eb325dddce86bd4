"""Servers that change their tools while connected: clients are notified, and calls use the new definitions."""

from pathlib import Path

import mcp_types
import pytest
from fastmcp import Context
from support import hostile_server
from support.mcp_servers import in_process, until
from support.proxies import Offering, Protocol, proxy_client, rules, talking

from packetgate.gate.facts import Facts
from packetgate.gate.gate import Gate
from packetgate.gate.journal import STARTED, Entry, MemoryJournal
from packetgate.state.context import RoutingContext
from packetgate.state.routing import ToolCall
from packetgate.state.sections import Header
from packetgate.toolsets.servers.config import ServerConfig
from packetgate.toolsets.servers.hub import McpHub
from packetgate.toolsets.servers.opening import new_connection


class Desk(Offering):
    """A server of notes whose tools change."""

    def __init__(self) -> None:
        super().__init__("desk")
        self.connection = in_process(self.server, trusted=True)
        self.offer("write_note", "text")

        @self.server.tool
        async def get_turn(context: Context) -> str:
            """Announce that the tools changed."""
            await context.send_notification(mcp_types.ToolListChangedNotification())
            return ""

    async def announce(self) -> None:
        """Notify the proxy that the tools changed."""
        client = self.connection.client()
        assert client
        await client.call_tool_mcp("get_turn", {})
        await until(lambda: self.connection.stale)


async def test_a_changed_tool_is_announced_to_a_session(tmp_path: Path) -> None:
    desk = Desk()
    async with proxy_client(tmp_path, desk.connection) as talk:
        assert "desk__find_note" not in await talk.names()
        desk.offer("find_note", "name")
        await desk.announce()
        await talk.until_list_changed()
        assert "desk__find_note" in await talk.names()


async def test_a_new_required_argument_is_requested_and_not_invented(tmp_path: Path, kind: Protocol) -> None:
    desk = Desk()
    async with proxy_client(
        tmp_path, desk.connection, kind=kind, answer=lambda *_: "yes", allow_write_tools=True
    ) as talk:
        await talk.names()
        desk.offer("write_note", "text", "copy_to")
        await desk.announce()
        result = await talk.call("desk.write_note", text="x")
        assert result.is_error
        assert "copy_to" in result.text
        assert (talk.asked, desk.ran) == ([], [])


@pytest.mark.parametrize("changes", [False, True])
async def test_a_definition_that_changes_while_the_start_is_recorded_gets_no_call(*, changes: bool) -> None:
    desk = Desk()

    class SlowJournal(MemoryJournal):
        async def record(self, *entries: Entry) -> bool:
            if changes and any(entry.event == STARTED for entry in entries):
                desk.offer("write_note", "text", "copy_to")
                await desk.announce()
                hub.maintain_servers()
                await hub.settle()
                assert "copy_to" in (await hub.catalogue())["desk.write_note"].parameters
            return await super().record(*entries)

    async with McpHub([desk.connection]) as hub:
        catalogue = await hub.catalogue()
        facts = Facts(
            Header(), catalogue, frozenset(catalogue), settings=RoutingContext(allow_write_tools=True), words="Note it"
        )
        gate = Gate(SlowJournal(), hub.call)
        waiting = await gate.propose([ToolCall(tool_name="desk.write_note", params={"text": "x"})], facts)
        (ended,) = (await gate.run(await gate.answer(waiting, "yes"))).calls
    assert ended.result
    assert ("changed its tools" in str(ended.result.error)) is changes
    assert len(desk.ran) == (0 if changes else 1)


async def test_an_allowed_write_waits_for_the_new_list(tmp_path: Path) -> None:
    slow = new_connection(ServerConfig("slow", hostile_server.entry("hesitating")), tmp_path / "logs")
    async with proxy_client(tmp_path, slow, preferences=rules("allow", "slow.*"), allow_write_tools=True) as talk:
        assert not (await talk.call("call_changing_tool", name="slow.send_word")).is_error
        await talk.call("call_changing_tool", name="slow.get_more")
        await until(lambda: slow.stale)
        assert (await talk.call("call_changing_tool", name="slow.send_word")).is_error
        await talk.call("call_changing_tool", name="slow.get_on")
        await until(lambda: len(slow.specs) == 4)
        assert not (await talk.call("call_changing_tool", name="slow.send_word")).is_error
        async with talking(talk.gateway, talk.url) as later:
            assert "slow__get_news" in await later.names()
