"""Many clients at once: what one is about, used and read never reaches another."""

import asyncio
import os
from pathlib import Path

from fastmcp import FastMCP
from support.proxies import Era, gateway_over, ledger_server, served, talking

from packetgate.connectors.proxy.sessions import MAX_CALLS, ProxySession, SessionBook
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import ToolCall, ToolResult, ToolRouting
from packetgate.state.transitions import ToolExecutionStatus

CLIENTS = 50
CALLS = 1_000 if os.environ.get("PACKETGATE_NIGHTLY") else 200


def rooms(count: int) -> FastMCP:
    """Return a server with a tool a client, which says whose it is."""
    server = FastMCP("rooms")
    for number in range(count):

        def tell(note: str, number: int = number) -> str:
            return f"room {number} heard {note}"

        server.tool(tell, name=f"read_room_{number}", description=f"Read what lies in room number {number} upstairs.")
    return server


async def test_fifty_clients_hear_of_nothing_but_their_own(tmp_path: Path, era: Era) -> None:
    async with (
        gateway_over(rooms(CLIENTS), ledger_server([], tools=20), home=tmp_path) as gateway,
        served(gateway) as address,
    ):

        async def client(number: int) -> None:
            async with talking(f"{address}/mcp", "sdk", era) as talk:
                said = await talk.call("set_context", query=f"read room number {number} upstairs")
                context = said.structured["context_id"]
                best = f"rooms.read_room_{number}"
                more = {"context_id": context} if context else {}
                for turn in range(CALLS // CLIENTS):
                    note = f"secret{number}x{turn}"
                    answer = await talk.call("call_read_tool", name=best, arguments={"note": note}, **more)
                    assert answer.text == f"room {number} heard {note}"

        await asyncio.gather(*(client(number) for number in range(CLIENTS)))
        for session in gateway.book:
            mine = {call.tool_name for call in session.calls}
            assert mine <= {*session.recent}
            assert len(mine) <= 1
            number = next((word for word in session.query.split() if word.isdigit()), "-")
            assert all(f"secret{number}x" in str(call.params) for call in session.calls)
        assert len([session for session in gateway.book if session.calls]) == CLIENTS


def _ended(text: str) -> CognitionPacket:
    call = ToolCall(tool_name="a.b", status=ToolExecutionStatus.EXECUTED, result=ToolResult(success=True, output=text))
    return CognitionPacket(tool_routing=ToolRouting(calls=(call,)))


def test_a_session_remembers_the_newest_outputs_within_bounds() -> None:
    session = ProxySession("local", RoutingContext())
    for number in range(MAX_CALLS + 5):
        session.remember_call(_ended(str(number)))
    kept = [call.result.output for call in session.calls if call.result]
    assert kept == [str(number) for number in range(5, MAX_CALLS + 5)]
    session.remember_call(_ended("x" * 150_000))
    session.remember_call(_ended("y" * 150_000))
    assert [call.result.output[0] for call in session.calls if call.result] == ["y"]
    assert session.recent == ("a.b",)


def test_the_longest_unused_session_is_forgotten() -> None:
    book = SessionBook(most=2)
    settings = RoutingContext()
    first = book.of("a", "x", settings)
    book.of("b", "x", settings)
    assert book.of("a", "x", settings) is first
    book.of("c", "x", settings)
    assert len(book) == 2
    assert book.of("a", "x", settings) is first
    assert book.found("b", "x") is None


def test_another_clients_key_opens_nothing() -> None:
    book = SessionBook()
    mine = book.of("a", "x", RoutingContext())
    assert book.found("a", "y") is None
    assert book.of("a", "y", RoutingContext()) is not mine
