"""Clients' sessions are isolated: the context, results and records of a client never reach another client."""

import asyncio
from pathlib import Path

import pytest
from fastmcp import FastMCP
from support.proxies import Protocol, gateway_over, ledger_server, served, talking

from packetgate.connectors.proxy.sessions import MAX_TRACED_CALLS, EarlierResults, ProxySession, SessionRegistry
from packetgate.gate.facts import Facts
from packetgate.gate.proposal import Proposal
from packetgate.graph.journal import open_journal
from packetgate.graph.settings import Settings
from packetgate.state.context import RoutingContext
from packetgate.state.routing import ToolCall, ToolResult
from packetgate.state.sections import Header
from packetgate.state.transitions import ToolExecutionStatus

CLIENTS, CALLS_EACH = 20, 4


def rooms_server() -> FastMCP:
    """Return a server with one tool for each client."""
    server = FastMCP("rooms")
    for number in range(CLIENTS):

        def read_room(note: str, number: int = number) -> str:
            return f"room {number} got {note}"

        description = f"Read what lies in room number {number} upstairs."
        server.tool(read_room, name=f"read_room_{number}", description=description)
    return server


@pytest.mark.slow
async def test_concurrent_clients_are_isolated(tmp_path: Path, kind: Protocol) -> None:
    tokens = {f"token-of-client-{number:03}": f"client{number}" for number in range(CLIENTS)}
    async with (
        gateway_over(rooms_server(), ledger_server([], tools=20), home=tmp_path) as gateway,
        served(gateway, tokens) as url,
    ):

        async def visit(number: int, token: str) -> None:
            async with talking(gateway, url, kind, token=token) as talk:
                context = await talk.set_context(f"read room number {number} upstairs")
                for turn in range(CALLS_EACH):
                    call = {"name": f"rooms.read_room_{number}", "arguments": {"note": f"secret{number}x{turn}"}}
                    result = await talk.call("call_read_tool", **call, **context)
                    assert result.text == f"room {number} got secret{number}x{turn}"

        await asyncio.gather(*(visit(number, token) for number, token in enumerate(tokens)))
        visited = [session for session in gateway.sessions.sessions.values() if session.own_results.calls]
        assert len(visited) == CLIENTS
        for session in visited:
            number = session.client.removeprefix("client")
            assert f"number {number} " in session.query
            assert all(f"secret{number}x" in str(call.params) for call in session.sources)
    owners: dict[str, str] = {}
    async for row in open_journal(Settings(home=tmp_path)).rows():
        entry = row.recorded_entry.entry
        if row.event == "call_read":
            owner = owners.setdefault(row.session_id, str(entry.detail["person"]).removeprefix("client"))
            assert f"secret{owner}x" in str(entry.detail)
    assert {*owners.values()} == {str(number) for number in range(CLIENTS)}


def ended(text: str) -> Proposal:
    call = ToolCall(tool_name="a.b", status=ToolExecutionStatus.EXECUTED, result=ToolResult(success=True, output=text))
    return Proposal(Facts(Header()), (call,))


def outputs(results: EarlierResults) -> list[str]:
    return [call.result.output for call in results.calls if call.result]


def test_a_session_remembers_the_newest_results_within_limits() -> None:
    session = ProxySession("local", RoutingContext(), EarlierResults())
    for number in range(MAX_TRACED_CALLS + 5):
        session.remember_call(ended(str(number)))
    newest = [str(number) for number in range(5, MAX_TRACED_CALLS + 5)]
    assert outputs(session.own_results) == outputs(session.shared_results) == newest
    for letter in "xy":
        session.remember_call(ended(letter * 150_000))
    assert [text[0] for text in outputs(session.own_results)] == ["y"]
    assert session.recent_tools == ("a.b",)


def test_the_least_recently_used_session_is_dropped_and_keys_belong_to_a_client() -> None:
    book, settings = SessionRegistry(limit=2), RoutingContext()
    first = book.session("a", "x", settings)
    book.session("b", "x", settings)
    assert book.session("a", "x", settings) is first
    book.session("c", "x", settings)
    assert book.find("a", "x") is first
    assert book.find("b", "x") is None
    assert book.find("a", "y") is None
    assert book.session("a", "y", settings) is not first
